#!/bin/bash -eu
# Builds every fuzz target and packs its committed seeds.
cargo fuzz build -O
for target in fuzz/fuzz_targets/*.rs; do
  name=$(basename "$target" .rs)
  cp "fuzz/target/x86_64-unknown-linux-gnu/release/$name" "$OUT/"
  zip -qj "$OUT/${name}_seed_corpus.zip" "fuzz/seeds/$name"/*
done
