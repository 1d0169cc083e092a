"""HTML pages: sign-in, list of studies, study."""
