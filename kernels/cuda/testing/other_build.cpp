// A libfettle_cuda.so from other sources: nothing of it but its interface may be asked for.
#include <cstdlib>

extern "C" {
const char* fettle_cuda_interface() { return "of yesterday"; }
void fettle_cuda_backend(void*) { std::abort(); }
}
