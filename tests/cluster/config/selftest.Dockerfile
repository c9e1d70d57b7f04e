# The least image that shows a pod reach the API server by its service address.
FROM debian:bookworm-slim
USER 65532:65532
ENTRYPOINT ["bash", "-c", "exec 3<> /dev/tcp/$KUBERNETES_SERVICE_HOST/$KUBERNETES_SERVICE_PORT && echo 'service reached'; sleep 600"]
