// A library of somebody else.
extern "C" int something_else() { return 1; }
