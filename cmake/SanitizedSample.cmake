# The test programs that `make test` also runs under the sanitizers: those of what reads documents,
# files and sockets of others, of what works on raw memory, and of the threads and processes of a
# training. All programs under all sanitizers take an hour when nothing is cached: `make test-all`.
set(FETTLE_SANITIZED_SAMPLE
  base_test base_http_test
  api_test api_yaml_test
  machine_test
  kube_test kube_transport_test
  emulator_test kernels_test kernels_plans_test kernels_cuda_loading_test
  trainer_checkpoint_test trainer_elastic_training_test trainer_gradient_sum_test
  trainer_image_set_test trainer_learner_test
  trainer_loader_test trainer_membership_test trainer_npy_test trainer_optimizer_shards_test
  trainer_parallel_test trainer_program_test trainer_recompute_test trainer_ring_test
  trainer_safetensors_test trainer_saved_model_test trainer_tensorboard_test trainer_text_test trainer_training_test)
add_custom_target(fettle_sanitized_sample)
