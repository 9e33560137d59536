"""A back end for NVIDIA's TAO SDK (nvidia-tao-sdk 7.2): its jobs run on Slurm, Kubernetes and machines through Muster.

    from muster.tao import MusterSDK

    sdk = MusterSDK()
    job = sdk.create_job(image="nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt", command="dino train -e /data/spec.yaml", gpu_count=8)
    print(sdk.get_job_status(job.id))

The SDK's registry finds MusterHandler by the entry point "muster" of the group tao_sdk.platforms. docs/coming-from-tao.md of
Muster describes both.
"""

from muster.tao._handler import MusterHandler
from muster.tao._sdk import MusterSDK

__all__ = ["MusterHandler", "MusterSDK"]
