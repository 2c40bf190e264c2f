# Two images without a shell. exporter, the last stage, is based on glibc, which
# NVIDIA's library needs. remediator has Kubernetes' client and runs once in a
# cluster. The bases are named by tag here; a release names them by digest,
#   make image GO_IMAGE=golang@sha256:… BASE_IMAGE=gcr.io/distroless/base-debian12@sha256:…
#   make image-remediator GO_IMAGE=golang@sha256:… STATIC_IMAGE=gcr.io/distroless/static-debian12@sha256:…
# and is then reproducible.
ARG GO_IMAGE=golang:1.26.8-bookworm
ARG STATIC_IMAGE=gcr.io/distroless/static-debian12:nonroot
ARG BASE_IMAGE=gcr.io/distroless/base-debian12:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build-remediator
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd/accel-remediator/go.mod cmd/accel-remediator/go.sum cmd/accel-remediator/
RUN go -C cmd/accel-remediator mod download
COPY . .
ARG REVISION=
ARG TARGETARCH
RUN make dist-remediator DIST=/out REVISION="$REVISION" GOARCH="${TARGETARCH:-$(go env GOARCH)}"

FROM ${STATIC_IMAGE} AS remediator
ARG REVISION=
LABEL org.opencontainers.image.title="accel-remediator" \
      org.opencontainers.image.source="https://github.com/accel-exporter/accel-exporter" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build-remediator /out/accel-remediator /usr/local/bin/
COPY --from=build-remediator /out/accel-remediator.third-party-licenses /usr/share/doc/accel-remediator/third-party-licenses
COPY LICENSE NOTICE /usr/share/doc/accel-remediator/
USER 65532:65532
EXPOSE 19401
ENTRYPOINT ["/usr/local/bin/accel-remediator"]

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETARCH
# The cross compiler, for the bindings of NVIDIA's library.
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
RUN make dist-exporter DIST=/out REVISION="$REVISION" GOARCH="${TARGETARCH:-$(go env GOARCH)}" CC="$(cat /cc)"

FROM ${BASE_IMAGE} AS exporter
ARG REVISION=
LABEL org.opencontainers.image.title="accel-exporter" \
      org.opencontainers.image.source="https://github.com/accel-exporter/accel-exporter" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /out/accel-exporter /usr/local/bin/
COPY --from=build /out/accel-exporter.third-party-licenses /usr/share/doc/accel-exporter/third-party-licenses
COPY LICENSE NOTICE /usr/share/doc/accel-exporter/
USER 65532:65532
EXPOSE 19400
ENTRYPOINT ["/usr/local/bin/accel-exporter"]
