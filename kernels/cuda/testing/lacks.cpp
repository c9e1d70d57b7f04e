// A libfettle_cuda.so that needs a library missing on this machine.
int fettle_gone();
extern "C" const char* fettle_cuda_interface() {
  return fettle_gone() == 0 ? FETTLE_PLUGIN_INTERFACE : "";
}
