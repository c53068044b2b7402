#!/bin/sh
#SBATCH --job-name=Five_2
#SBATCH --array=1-8
#SBATCH --cpus-per-task=2
#SBATCH --output=studies/Five_2/slurm-%a.log
# One task for each shard of a study. When all have ended: quartet bench merge studies/Five_2
exec quartet bench 'my studies/it'\''s five.yaml' --out studies --shard "$SLURM_ARRAY_TASK_ID/8" -j "${SLURM_CPUS_PER_TASK:-2}"
