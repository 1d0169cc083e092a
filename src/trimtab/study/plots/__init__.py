"""Pictures and tables of a study: Plotly, matplotlib, data frames."""
