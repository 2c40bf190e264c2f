# The two programs and glibc, which NVIDIA's library needs; no shell. The base
# is by tag here: a release names both images by digest,
#   make image GO_IMAGE=golang@sha256:… BASE_IMAGE=gcr.io/distroless/base-debian12@sha256:…
# and is then the same bytes wherever it is built.
ARG GO_IMAGE=golang:1.26.8-bookworm
ARG BASE_IMAGE=gcr.io/distroless/base-debian12:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETARCH
# The compiler of another processor, for the bindings of NVIDIA's library.
RUN case "${TARGETARCH:-$(go env GOARCH)}" in \
      "$(go env GOARCH)") cc= ;; \
      arm64) cc=aarch64-linux-gnu; packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;; \
      amd64) cc=x86_64-linux-gnu; packages="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;; \
      *) echo "no compiler for $TARGETARCH; amd64 and arm64 have one" >&2; exit 1 ;; \
    esac; \
    if [ -n "$cc" ]; then apt-get update && apt-get install -y --no-install-recommends $packages; fi; \
    echo "${cc:+$cc-}gcc" > /cc
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG REVISION=
RUN make dist DIST=/out REVISION="$REVISION" GOARCH="${TARGETARCH:-$(go env GOARCH)}" CC="$(cat /cc)"

FROM ${BASE_IMAGE}
ARG REVISION=
LABEL org.opencontainers.image.title="accel-exporter" \
      org.opencontainers.image.source="https://github.com/accel-exporter/accel-exporter" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /out/accel-exporter /out/accel-rules /usr/local/bin/
COPY LICENSE NOTICE /usr/share/doc/accel-exporter/
USER 65532:65532
EXPOSE 19400
ENTRYPOINT ["/usr/local/bin/accel-exporter"]
