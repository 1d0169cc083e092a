"""The pages for people: sign-in, the list of studies, a study."""
