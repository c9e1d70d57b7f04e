// A library that is missing when lacks.cpp is loaded.
int fettle_gone() { return 0; }
