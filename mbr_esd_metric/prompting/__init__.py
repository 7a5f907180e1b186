"""The question to a language model, and the reading of its answer: prompt, grammar, parsing, location of spans."""
