#!/usr/bin/env bash
# Remakes classic_baseline.json: what the scikit-learn system says of the labelled jobs.
# Needs ../shared beside the checkout, and python3 with numpy, pandas, pyarrow and scikit-learn (PYTHON=... chooses one).
set -euo pipefail
cd "$(dirname "$0")"
shared=../../../shared
{
    echo '{'
    first=true
    for file in "$shared"/data/real/*.parquet "$shared"/data/sim/*.parquet; do
        job=$(basename "$file" .parquet)
        warmup=10
        [ "$job" = pai-job1 ] && warmup=0
        verdict=$("${PYTHON:-python3}" "$shared/tools/classic_baseline.py" "$file" --job "$job" --warmup "$warmup")
        $first || echo ','
        first=false
        printf '%s' "$verdict" | "${PYTHON:-python3}" -c "
import json, sys
print(f'  \"$job\": {json.load(sys.stdin)[\"anomaly_ranks\"]}', end='')"
    done
    echo
    echo '}'
} > classic_baseline.json.new
mv classic_baseline.json.new classic_baseline.json
