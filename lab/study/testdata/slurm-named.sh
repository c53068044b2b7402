#!/bin/sh
#SBATCH --job-name=___
#SBATCH --array=1-8
#SBATCH --cpus-per-task=2
#SBATCH --output="100%% \"new\"/___/slurm-%a.log"
# One task for each shard of a study. When all have ended: quartet bench merge '100% "new"/___'
exec quartet bench ./-s.yaml --out '100% "new"' --name ___ --plugin-dir plugins --plugin-dir 'my plugins' --shard "$SLURM_ARRAY_TASK_ID/8" -j "${SLURM_CPUS_PER_TASK:-2}"
