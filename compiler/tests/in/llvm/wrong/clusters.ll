; Clusters that no GPU has.
define ptx_kernel void @k(ptr %p) "nvvm.cluster_dim"="64,64,64" "nvvm.maxclusterrank"="999" {
  ret void
}
