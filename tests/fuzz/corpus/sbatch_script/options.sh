#!/bin/bash -l
#SBATCH --job-name="a b" -N 2-4 --ntasks-per-node=8
#SBATCH --time=1-02:03:04 --mem=4G --gres=gpu:a100:2,shard:1
#SBATCH -a 1-9:2%3,11 --dependency=afterok:12:13,singleton
#SBATCH --mail-type=END,FAIL --gpus=h100:4 --export=ALL,A=1
#SBATCH --container-image=nvcr.io#nvidia/pytorch:24.01 # comment
srun hostname
