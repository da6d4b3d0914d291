"""A small real model for any machine, from two packages, on llama.cpp's server, asked in every role."""
