"""Tables, plots, the HTML viewer, and segments in the terminal."""
