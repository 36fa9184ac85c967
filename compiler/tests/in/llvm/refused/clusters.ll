; The legacy dialect would ignore it.
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k() "nvvm.blocksareclusters" "nvvm.reqntid"="32" "nvvm.cluster_dim"="2" {
  ret void
}
