"""A real model on every machine: a small one behind llama.cpp's server, from two packages, asked in every role."""
