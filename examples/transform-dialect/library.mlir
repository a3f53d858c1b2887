// Chooses the tile sizes of every matmul instead of the compiler: --iree-codegen-transform-dialect-library runs
// @__kernel_config on each executable before the compiler picks a strategy.
module attributes { transform.with_named_sequence } {
  transform.named_sequence @match_matmul(%op: !transform.any_op {transform.readonly})
      -> (!transform.any_op, !transform.any_param) {
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    %config = transform.param.constant #iree_codegen.compilation_info<
      lowering_config = #iree_cpu.lowering_config<
        distribution = [16, 16, 0], cache_parallel = [16, 16, 0],
        vector_common_parallel = [8, 16, 0], vector_reduction = [0, 0, 4]>,
      translation_info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>
    > -> !transform.any_param
    transform.yield %op, %config : !transform.any_op, !transform.any_param
  }

  transform.named_sequence @configure(
      %op: !transform.any_op {transform.readonly}, %config: !transform.any_param {transform.readonly}) {
    transform.annotate %op "compilation_info" = %config : !transform.any_op, !transform.any_param
    transform.yield
  }

  transform.named_sequence @__kernel_config(%variant: !transform.any_op {transform.consumed}) -> !transform.any_op {
    %configured = transform.foreach_match in %variant @match_matmul -> @configure
      : (!transform.any_op) -> !transform.any_op
    transform.yield %configured : !transform.any_op
  }
}
