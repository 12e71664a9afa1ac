# syntax=docker/dockerfile:1
FROM python:3.13-slim-bookworm AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/heedful
# What changes seldom comes first: the locked dependencies, then the model, which is built from published weights.
COPY requirements/image.lock requirements/
RUN /opt/heedful/bin/pip install --require-hashes --only-binary :all: -r requirements/image.lock
COPY packages/heedful-minilm packages/heedful-minilm
RUN /opt/heedful/bin/pip install --no-deps ./packages/heedful-minilm
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
# The running container can't write byte code, so it is made here.
RUN /opt/heedful/bin/pip install --no-deps . \
    && /opt/heedful/bin/pip uninstall --yes pip \
    && python -m compileall -q -j 0 /opt/heedful/lib

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="Heedful" \
      org.opencontainers.image.description="The feedback loop for AI agents" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin heedful \
    && install -d -o heedful -g heedful -m 0700 /data
COPY --from=build /opt/heedful /opt/heedful
ENV PATH=/opt/heedful/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HEEDFUL_STORE=/data/heedful.db
USER 10001:10001
WORKDIR /data
# The only folders that are written to: the root file system may be read-only, with a tmpfs on /tmp.
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["heedful"]
CMD ["serve", "--host", "0.0.0.0"]
