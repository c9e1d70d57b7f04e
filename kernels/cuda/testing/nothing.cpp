// A library of another project.
extern "C" int something_else() { return 1; }
