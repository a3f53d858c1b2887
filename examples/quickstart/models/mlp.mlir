#map = affine_map<(d0, d1) -> (d1)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
module {
  util.global private @w0 = #flow.parameter.named<"model"::"w0"> : tensor<64xf32>
  util.global private @w1 = #flow.parameter.named<"model"::"w1"> : tensor<64x512xf32>
  util.global private @w2 = #flow.parameter.named<"model"::"w2"> : tensor<512xf32>
  util.global private @w3 = #flow.parameter.named<"model"::"w3"> : tensor<512x128xf32>
  func.func @main(%arg0: tensor<256x128xf32>) -> tensor<256x64xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = util.global.load @w0 : tensor<64xf32>
    %cst_1 = util.global.load @w1 : tensor<64x512xf32>
    %cst_2 = util.global.load @w2 : tensor<512xf32>
    %cst_3 = util.global.load @w3 : tensor<512x128xf32>
    %0 = tensor.empty() : tensor<128x512xf32>
    %transposed = linalg.transpose ins(%cst_3 : tensor<512x128xf32>) outs(%0 : tensor<128x512xf32>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<256x512xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<256x512xf32>) -> tensor<256x512xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<256x128xf32>, tensor<128x512xf32>) outs(%2 : tensor<256x512xf32>) -> tensor<256x512xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_2 : tensor<512xf32>) outs(%1 : tensor<256x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<256x512xf32>
    %5 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%3, %4 : tensor<256x512xf32>, tensor<256x512xf32>) outs(%1 : tensor<256x512xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %13 = arith.addf %in, %in_5 : f32
      linalg.yield %13 : f32
    } -> tensor<256x512xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<256x512xf32>) outs(%1 : tensor<256x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.cmpf ugt, %in, %cst : f32
      %14 = arith.select %13, %in, %cst : f32
      linalg.yield %14 : f32
    } -> tensor<256x512xf32>
    %7 = tensor.empty() : tensor<512x64xf32>
    %transposed_4 = linalg.transpose ins(%cst_1 : tensor<64x512xf32>) outs(%7 : tensor<512x64xf32>) permutation = [1, 0] 
    %8 = tensor.empty() : tensor<256x64xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%8 : tensor<256x64xf32>) -> tensor<256x64xf32>
    %10 = linalg.matmul ins(%6, %transposed_4 : tensor<256x512xf32>, tensor<512x64xf32>) outs(%9 : tensor<256x64xf32>) -> tensor<256x64xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_0 : tensor<64xf32>) outs(%8 : tensor<256x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<256x64xf32>
    %12 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%10, %11 : tensor<256x64xf32>, tensor<256x64xf32>) outs(%8 : tensor<256x64xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %13 = arith.addf %in, %in_5 : f32
      linalg.yield %13 : f32
    } -> tensor<256x64xf32>
    return %12 : tensor<256x64xf32>
  }
}

