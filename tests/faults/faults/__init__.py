"""The faults between Muster and a Slurm cluster, each as a function that makes it happen N times."""
