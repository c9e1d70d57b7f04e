// A library that is not there when lacks.cpp is loaded.
int fettle_gone() { return 0; }
