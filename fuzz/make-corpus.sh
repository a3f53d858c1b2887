#!/bin/sh
# Fills the corpus of each target with the fixtures of its format. Run it from the root of the
# repository.
set -eu
fixtures=tests/fixtures/tool_output
seed() { target=$1; shift; mkdir -p "fuzz/corpus/$target"; for file; do cp "$file" "fuzz/corpus/$target/$(basename "$file")"; done; }
seed google_benchmark_json "$fixtures"/google_benchmark/*.json
seed google_benchmark_csv "$fixtures"/google_benchmark/*.csv
seed google_benchmark_console "$fixtures"/google_benchmark/*.console
seed iree_run_module "$fixtures"/iree_run_module/*
seed latency_csv "$fixtures"/latency_csv/*
seed results_jsonl "$fixtures"/torchbench/*
seed compile_benchmark_json "$fixtures"/compile_benchmark/*.json
seed compile_benchmark_markdown "$fixtures"/compile_benchmark/*.md
seed conv_library "$fixtures"/conv_library/*
seed hyperfine_json "$fixtures"/hyperfine/*
seed pytest_benchmark_json "$fixtures"/pytest_benchmark/*
seed nvbench_json "$fixtures"/nvbench/*
seed criterion_estimates "$fixtures"/criterion/matmul/256/new/estimates.json
seed criterion_sample "$fixtures"/criterion/matmul/256/new/*sample.json
seed benchfmt "$fixtures"/benchfmt/*
seed jmh_json "$fixtures"/jmh/*
seed asv_json "$fixtures"/asv/*
seed go_test_json "$fixtures"/go_test/*
seed cargo_bench "$fixtures"/cargo_bench/*
seed custom_smaller_is_better "$fixtures"/custom/list.json
seed custom_bigger_is_better "$fixtures"/custom/list.json
seed bencher_json "$fixtures"/custom/bencher.json
mkdir -p fuzz/corpus/compiled_code
for file in tests/fixtures/compiled_code/*.3.13.0.vmfb.gz; do
  gzip -dc "$file" > "fuzz/corpus/compiled_code/$(basename "$file" .gz)"
done
mkdir -p fuzz/corpus/run_json
for file in google_benchmark/abs.csv google_benchmark/errored.json jmh/results.json; do
  cargo run -q -- -q convert "$fixtures/$file" "fuzz/corpus/run_json/$(echo "$file" | tr / -).json" --to run-json
done
