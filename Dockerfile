FROM python:3.13-slim-bookworm AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1
RUN python -m venv /opt/heedful && python -m venv /opt/build
# What changes seldom comes first: what builds, the locked dependencies, then the model, from published weights.
COPY requirements/build.lock requirements/image.lock requirements/
RUN /opt/build/bin/pip install --require-hashes --no-deps --only-binary :all: -r requirements/build.lock \
    && /opt/heedful/bin/pip install --require-hashes --no-deps --only-binary :all: -r requirements/image.lock
# Without isolation: an isolated build would download what it needs without comparing hashes.
COPY packages/heedful-minilm packages/heedful-minilm
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels ./packages/heedful-minilm
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/heedful/bin/pip install --no-deps --no-index /wheels/*.whl
# What only builds, downloads, tests and training need is not taken along.
WORKDIR /opt/heedful/lib/python3.13/site-packages
RUN rm -rf pip pip-* hf_xet* huggingface_hub* fsspec* filelock* tqdm* \
        onnxruntime/transformers onnxruntime/tools onnxruntime/quantization \
    && find . -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="Heedful" \
      org.opencontainers.image.description="The feedback loop for AI agents" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin heedful \
    && install -d -o heedful -g heedful -m 0700 /data
COPY --from=build /opt/heedful /opt/heedful
# Byte code would be a fifth of the image: each container makes its own, once.
ENV PATH=/opt/heedful/bin:$PATH PYTHONPYCACHEPREFIX=/tmp/pycache PYTHONUNBUFFERED=1 HEEDFUL_STORE=/data/heedful.db
USER 10001:10001
WORKDIR /data
# The only folders that are written to: the root file system may be read-only, with a tmpfs on /tmp.
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["heedful"]
CMD ["serve", "--host", "0.0.0.0"]
