#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
module {
  util.global private @w0 = #flow.parameter.named<"model"::"w0"> : tensor<64xf32>
  util.global private @w1 = #flow.parameter.named<"model"::"w1"> : tensor<64xf32>
  util.global private @w2 = #flow.parameter.named<"model"::"w2"> : tensor<64xf32>
  util.global private @w3 = #flow.parameter.named<"model"::"w3"> : tensor<64xf32>
  util.global private @w4 = #flow.parameter.named<"model"::"w4"> : tensor<64x64x3x3xf32>
  util.global private @w5 = #flow.parameter.named<"model"::"w5"> : tensor<64xf32>
  util.global private @w6 = #flow.parameter.named<"model"::"w6"> : tensor<64xf32>
  util.global private @w7 = #flow.parameter.named<"model"::"w7"> : tensor<64xf32>
  util.global private @w8 = #flow.parameter.named<"model"::"w8"> : tensor<64xf32>
  util.global private @w9 = #flow.parameter.named<"model"::"w9"> : tensor<64x64x3x3xf32>
  func.func @main(%arg0: tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = util.global.load @w0 : tensor<64xf32>
    %cst_1 = util.global.load @w1 : tensor<64xf32>
    %cst_2 = util.global.load @w2 : tensor<64xf32>
    %cst_3 = util.global.load @w3 : tensor<64xf32>
    %cst_4 = util.global.load @w4 : tensor<64x64x3x3xf32>
    %cst_5 = util.global.load @w5 : tensor<64xf32>
    %cst_6 = util.global.load @w6 : tensor<64xf32>
    %cst_7 = arith.constant 1.000000e-05 : f64
    %cst_8 = util.global.load @w7 : tensor<64xf32>
    %cst_9 = util.global.load @w8 : tensor<64xf32>
    %cst_10 = util.global.load @w9 : tensor<64x64x3x3xf32>
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
      tensor.yield %cst : f32
    } : tensor<1x64x28x28xf32> to tensor<1x64x30x30xf32>
    %0 = tensor.empty() : tensor<1x64x28x28xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %cst_10 : tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) outs(%1 : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
    %3 = tensor.empty() : tensor<64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%cst_8 : tensor<64xf32>) outs(%3 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.truncf %cst_7 : f64 to f32
      %21 = arith.addf %in, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%4 : tensor<64xf32>) outs(%3 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = math.rsqrt %in : f32
      linalg.yield %20 : f32
    } -> tensor<64xf32>
    %expanded = tensor.expand_shape %cst_9 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %expanded_11 = tensor.expand_shape %5 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %expanded : tensor<1x64x28x28xf32>, tensor<64x1x1xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %20 = arith.subf %in, %in_19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x64x28x28xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %expanded_11 : tensor<1x64x28x28xf32>, tensor<64x1x1xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %20 = arith.mulf %in, %in_19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x64x28x28xf32>
    %expanded_12 = tensor.expand_shape %cst_6 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7, %expanded_12 : tensor<1x64x28x28xf32>, tensor<64x1x1xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %20 = arith.mulf %in, %in_19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x64x28x28xf32>
    %expanded_13 = tensor.expand_shape %cst_5 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %expanded_13 : tensor<1x64x28x28xf32>, tensor<64x1x1xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %20 = arith.addf %in, %in_19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x64x28x28xf32>
    %10 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<1x64x28x28xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.cmpf ugt, %in, %cst : f32
      %21 = arith.select %20, %in, %cst : f32
      linalg.yield %21 : f32
    } -> tensor<1x64x28x28xf32>
    %padded_14 = tensor.pad %10 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
      tensor.yield %cst : f32
    } : tensor<1x64x28x28xf32> to tensor<1x64x30x30xf32>
    %11 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_14, %cst_4 : tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) outs(%1 : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%cst_2 : tensor<64xf32>) outs(%3 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.truncf %cst_7 : f64 to f32
      %21 = arith.addf %in, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<64xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%12 : tensor<64xf32>) outs(%3 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = math.rsqrt %in : f32
      linalg.yield %20 : f32
    } -> tensor<64xf32>
    %expanded_15 = tensor.expand_shape %cst_3 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %expanded_16 = tensor.expand_shape %13 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %14 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11, %expanded_15 : tensor<1x64x28x28xf32>, tensor<64x1x1xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %20 = arith.subf %in, %in_19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x64x28x28xf32>
    %15 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %expanded_16 : tensor<1x64x28x28xf32>, tensor<64x1x1xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %20 = arith.mulf %in, %in_19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x64x28x28xf32>
    %expanded_17 = tensor.expand_shape %cst_1 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %16 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %expanded_17 : tensor<1x64x28x28xf32>, tensor<64x1x1xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %20 = arith.mulf %in, %in_19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x64x28x28xf32>
    %expanded_18 = tensor.expand_shape %cst_0 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %expanded_18 : tensor<1x64x28x28xf32>, tensor<64x1x1xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %20 = arith.addf %in, %in_19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x64x28x28xf32>
    %18 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %17 : tensor<1x64x28x28xf32>, tensor<1x64x28x28xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %20 = arith.addf %in, %in_19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x64x28x28xf32>
    %19 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<1x64x28x28xf32>) outs(%0 : tensor<1x64x28x28xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.cmpf ugt, %in, %cst : f32
      %21 = arith.select %20, %in, %cst : f32
      linalg.yield %21 : f32
    } -> tensor<1x64x28x28xf32>
    return %19 : tensor<1x64x28x28xf32>
  }
}

