# The program `tickpath` alone; compose.yaml says what it is run with.

FROM rust:1.95-bookworm AS builder
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crates crates
# zlib and OpenSSL go into the program, so that the image below needs nothing but the C library.
RUN LIBZ_SYS_STATIC=1 cargo build --release --locked --features vendored-tls -p tickpath-cli

FROM debian:bookworm-slim
COPY --from=builder /src/target/release/tickpath /usr/local/bin/tickpath
USER nobody
ENTRYPOINT ["tickpath"]
