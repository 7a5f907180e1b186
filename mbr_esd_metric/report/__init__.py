"""Tables, plots and the HTML viewer."""
