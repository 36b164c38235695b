"""Kernels of the papers that no application needs; `KernelPCA` takes them as any other."""
