// A libfettle_cuda.so from other sources: the program may ask for nothing but its interface.
#include <cstdlib>

extern "C" {
const char* fettle_cuda_interface() { return "of yesterday"; }
void fettle_cuda_backend(void*) { std::abort(); }
}
