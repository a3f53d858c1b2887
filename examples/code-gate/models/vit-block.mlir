#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
#map3 = affine_map<(d0, d1) -> (d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  util.global private @w0 = #flow.parameter.named<"model"::"w0"> : tensor<192xf32>
  util.global private @w1 = #flow.parameter.named<"model"::"w1"> : tensor<192x192xf32>
  util.global private @w2 = #flow.parameter.named<"model"::"w2"> : tensor<192xf32>
  util.global private @w3 = #flow.parameter.named<"model"::"w3"> : tensor<192x192xf32>
  util.global private @w4 = #flow.parameter.named<"model"::"w4"> : tensor<192xf32>
  util.global private @w5 = #flow.parameter.named<"model"::"w5"> : tensor<192xf32>
  util.global private @w6 = #flow.parameter.named<"model"::"w6"> : tensor<192xf32>
  util.global private @w7 = #flow.parameter.named<"model"::"w7"> : tensor<192x192xf32>
  util.global private @w8 = #flow.parameter.named<"model"::"w8"> : tensor<576xf32>
  util.global private @w9 = #flow.parameter.named<"model"::"w9"> : tensor<576x192xf32>
  util.global private @w10 = #flow.parameter.named<"model"::"w10"> : tensor<192xf32>
  util.global private @w11 = #flow.parameter.named<"model"::"w11"> : tensor<192xf32>
  func.func @main(%arg0: tensor<1x197x192xf32>) -> tensor<1x197x192xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_2 = arith.constant 1.000000e+00 : f32
    %cst_3 = arith.constant 5.000000e-01 : f32
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<1x4x197x197xf32>
    %cst_5 = util.global.load @w0 : tensor<192xf32>
    %cst_6 = util.global.load @w1 : tensor<192x192xf32>
    %cst_7 = util.global.load @w2 : tensor<192xf32>
    %cst_8 = util.global.load @w3 : tensor<192x192xf32>
    %cst_9 = util.global.load @w4 : tensor<192xf32>
    %cst_10 = util.global.load @w5 : tensor<192xf32>
    %cst_11 = util.global.load @w6 : tensor<192xf32>
    %cst_12 = util.global.load @w7 : tensor<192x192xf32>
    %cst_13 = arith.constant 0xFFF0000000000000 : f64
    %cst_14 = arith.constant 0.37991784282579633 : f64
    %cst_15 = util.global.load @w8 : tensor<576xf32>
    %cst_16 = util.global.load @w9 : tensor<576x192xf32>
    %cst_17 = util.global.load @w10 : tensor<192xf32>
    %cst_18 = util.global.load @w11 : tensor<192xf32>
    %cst_19 = arith.constant 1.000000e-05 : f64
    %cst_20 = arith.constant 1.920000e+02 : f64
    %cst_21 = arith.constant 1.920000e+02 : f32
    %cst_22 = arith.constant 1.41421354 : f32
    %0 = tensor.empty() : tensor<1x197x192xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x197x192xf32>) outs(%0 : tensor<1x197x192xf64>) {
    ^bb0(%in: f32, %out: f64):
      %89 = arith.extf %in : f32 to f64
      linalg.yield %89 : f64
    } -> tensor<1x197x192xf64>
    %2 = tensor.empty() : tensor<1x197x1xf64>
    %3 = linalg.fill ins(%cst : f64) outs(%2 : tensor<1x197x1xf64>) -> tensor<1x197x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1 : tensor<1x197x192xf64>) outs(%3 : tensor<1x197x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %89 = arith.addf %in, %out : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x1xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<1x197x1xf64>) outs(%2 : tensor<1x197x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %89 = arith.divf %in, %cst_20 : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x1xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %5 : tensor<1x197x192xf64>, tensor<1x197x1xf64>) outs(%0 : tensor<1x197x192xf64>) {
    ^bb0(%in: f64, %in_46: f64, %out: f64):
      %89 = arith.subf %in, %in_46 : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x192xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %6 : tensor<1x197x192xf64>, tensor<1x197x192xf64>) outs(%0 : tensor<1x197x192xf64>) {
    ^bb0(%in: f64, %in_46: f64, %out: f64):
      %89 = arith.mulf %in, %in_46 : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x192xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%7 : tensor<1x197x192xf64>) outs(%3 : tensor<1x197x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %89 = arith.addf %in, %out : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x1xf64>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<1x197x1xf64>) outs(%2 : tensor<1x197x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %89 = arith.divf %in, %cst_20 : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x1xf64>
    %10 = tensor.empty() : tensor<1x197x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<1x197x1xf64>) outs(%10 : tensor<1x197x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %89 = arith.truncf %in : f64 to f32
      linalg.yield %89 : f32
    } -> tensor<1x197x1xf32>
    %12 = linalg.fill ins(%cst_0 : f32) outs(%10 : tensor<1x197x1xf32>) -> tensor<1x197x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<1x197x192xf32>) outs(%12 : tensor<1x197x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.addf %in, %out : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<1x197x1xf32>) outs(%10 : tensor<1x197x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.divf %in, %cst_21 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<1x197x1xf32>) outs(%10 : tensor<1x197x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.truncf %cst_19 : f64 to f32
      %90 = arith.addf %in, %89 : f32
      linalg.yield %90 : f32
    } -> tensor<1x197x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<1x197x1xf32>) outs(%10 : tensor<1x197x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = math.rsqrt %in : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x1xf32>
    %17 = tensor.empty() : tensor<1x197x192xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %14 : tensor<1x197x192xf32>, tensor<1x197x1xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.subf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18, %16 : tensor<1x197x192xf32>, tensor<1x197x1xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.mulf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19, %cst_18 : tensor<1x197x192xf32>, tensor<192xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.mulf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%20, %cst_17 : tensor<1x197x192xf32>, tensor<192xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.addf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    %collapsed = tensor.collapse_shape %21 [[0, 1], [2]] : tensor<1x197x192xf32> into tensor<197x192xf32>
    %22 = tensor.empty() : tensor<192x576xf32>
    %transposed = linalg.transpose ins(%cst_16 : tensor<576x192xf32>) outs(%22 : tensor<192x576xf32>) permutation = [1, 0] 
    %23 = tensor.empty() : tensor<197x576xf32>
    %24 = linalg.fill ins(%cst_0 : f32) outs(%23 : tensor<197x576xf32>) -> tensor<197x576xf32>
    %25 = linalg.matmul ins(%collapsed, %transposed : tensor<197x192xf32>, tensor<192x576xf32>) outs(%24 : tensor<197x576xf32>) -> tensor<197x576xf32>
    %26 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_15 : tensor<576xf32>) outs(%23 : tensor<197x576xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<197x576xf32>
    %27 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%25, %26 : tensor<197x576xf32>, tensor<197x576xf32>) outs(%23 : tensor<197x576xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.addf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<197x576xf32>
    %expanded = tensor.expand_shape %27 [[0, 1], [2, 3, 4]] output_shape [1, 197, 3, 4, 48] : tensor<197x576xf32> into tensor<1x197x3x4x48xf32>
    %28 = tensor.empty() : tensor<3x1x4x197x48xf32>
    %transposed_23 = linalg.transpose ins(%expanded : tensor<1x197x3x4x48xf32>) outs(%28 : tensor<3x1x4x197x48xf32>) permutation = [2, 0, 3, 1, 4] 
    %extracted_slice = tensor.extract_slice %transposed_23[0, 0, 0, 0, 0] [1, 1, 4, 197, 48] [1, 1, 1, 1, 1] : tensor<3x1x4x197x48xf32> to tensor<1x1x4x197x48xf32>
    %collapsed_24 = tensor.collapse_shape %extracted_slice [[0, 1], [2], [3], [4]] : tensor<1x1x4x197x48xf32> into tensor<1x4x197x48xf32>
    %extracted_slice_25 = tensor.extract_slice %transposed_23[1, 0, 0, 0, 0] [1, 1, 4, 197, 48] [1, 1, 1, 1, 1] : tensor<3x1x4x197x48xf32> to tensor<1x1x4x197x48xf32>
    %collapsed_26 = tensor.collapse_shape %extracted_slice_25 [[0, 1], [2], [3], [4]] : tensor<1x1x4x197x48xf32> into tensor<1x4x197x48xf32>
    %extracted_slice_27 = tensor.extract_slice %transposed_23[2, 0, 0, 0, 0] [1, 1, 4, 197, 48] [1, 1, 1, 1, 1] : tensor<3x1x4x197x48xf32> to tensor<1x1x4x197x48xf32>
    %29 = tensor.empty() : tensor<1x4x197x48xf32>
    %30 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_24 : tensor<1x4x197x48xf32>) outs(%29 : tensor<1x4x197x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.truncf %cst_14 : f64 to f32
      %90 = arith.mulf %in, %89 : f32
      linalg.yield %90 : f32
    } -> tensor<1x4x197x48xf32>
    %31 = tensor.empty() : tensor<1x4x48x197xf32>
    %transposed_28 = linalg.transpose ins(%collapsed_26 : tensor<1x4x197x48xf32>) outs(%31 : tensor<1x4x48x197xf32>) permutation = [0, 1, 3, 2] 
    %32 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_28 : tensor<1x4x48x197xf32>) outs(%31 : tensor<1x4x48x197xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.truncf %cst_14 : f64 to f32
      %90 = arith.mulf %in, %89 : f32
      linalg.yield %90 : f32
    } -> tensor<1x4x48x197xf32>
    %collapsed_29 = tensor.collapse_shape %30 [[0, 1], [2], [3]] : tensor<1x4x197x48xf32> into tensor<4x197x48xf32>
    %collapsed_30 = tensor.collapse_shape %32 [[0, 1], [2], [3]] : tensor<1x4x48x197xf32> into tensor<4x48x197xf32>
    %33 = tensor.empty() : tensor<4x197x197xf32>
    %34 = linalg.fill ins(%cst_0 : f32) outs(%33 : tensor<4x197x197xf32>) -> tensor<4x197x197xf32>
    %35 = linalg.batch_matmul ins(%collapsed_29, %collapsed_30 : tensor<4x197x48xf32>, tensor<4x48x197xf32>) outs(%34 : tensor<4x197x197xf32>) -> tensor<4x197x197xf32>
    %expanded_31 = tensor.expand_shape %35 [[0, 1], [2], [3]] output_shape [1, 4, 197, 197] : tensor<4x197x197xf32> into tensor<1x4x197x197xf32>
    %36 = tensor.empty() : tensor<1x4x197xi64>
    %37 = linalg.fill ins(%c0_i64 : i64) outs(%36 : tensor<1x4x197xi64>) -> tensor<1x4x197xi64>
    %38 = tensor.empty() : tensor<1x4x197xf32>
    %39 = linalg.fill ins(%cst_1 : f32) outs(%38 : tensor<1x4x197xf32>) -> tensor<1x4x197xf32>
    %40:2 = linalg.generic {indexing_maps = [#map5, #map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded_31 : tensor<1x4x197x197xf32>) outs(%39, %37 : tensor<1x4x197xf32>, tensor<1x4x197xi64>) {
    ^bb0(%in: f32, %out: f32, %out_46: i64):
      %89 = linalg.index 3 : index
      %90 = arith.index_cast %89 : index to i64
      %91 = arith.maximumf %in, %out : f32
      %92 = arith.cmpf ogt, %in, %out : f32
      %93 = arith.select %92, %90, %out_46 : i64
      linalg.yield %91, %93 : f32, i64
    } -> (tensor<1x4x197xf32>, tensor<1x4x197xi64>)
    %expanded_32 = tensor.expand_shape %40#0 [[0], [1], [2, 3]] output_shape [1, 4, 197, 1] : tensor<1x4x197xf32> into tensor<1x4x197x1xf32>
    %41 = tensor.empty() : tensor<1x4x197x197xf32>
    %42 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_31, %expanded_32 : tensor<1x4x197x197xf32>, tensor<1x4x197x1xf32>) outs(%41 : tensor<1x4x197x197xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.subf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x4x197x197xf32>
    %43 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%42 : tensor<1x4x197x197xf32>) outs(%41 : tensor<1x4x197x197xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = math.exp %in : f32
      linalg.yield %89 : f32
    } -> tensor<1x4x197x197xf32>
    %44 = tensor.empty() : tensor<1x4x197x1xf32>
    %45 = linalg.fill ins(%cst_0 : f32) outs(%44 : tensor<1x4x197x1xf32>) -> tensor<1x4x197x1xf32>
    %46 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%43 : tensor<1x4x197x197xf32>) outs(%45 : tensor<1x4x197x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.addf %in, %out : f32
      linalg.yield %89 : f32
    } -> tensor<1x4x197x1xf32>
    %47 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43, %46 : tensor<1x4x197x197xf32>, tensor<1x4x197x1xf32>) outs(%41 : tensor<1x4x197x197xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.divf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x4x197x197xf32>
    %48 = tensor.empty() : tensor<1x4x197x197xi1>
    %49 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_31 : tensor<1x4x197x197xf32>) outs(%48 : tensor<1x4x197x197xi1>) {
    ^bb0(%in: f32, %out: i1):
      %89 = arith.extf %in : f32 to f64
      %90 = arith.cmpf oeq, %89, %cst_13 : f64
      linalg.yield %90 : i1
    } -> tensor<1x4x197x197xi1>
    %50 = tensor.empty() : tensor<1x4x197x1xi1>
    %51 = linalg.fill ins(%true : i1) outs(%50 : tensor<1x4x197x1xi1>) -> tensor<1x4x197x1xi1>
    %52 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%49 : tensor<1x4x197x197xi1>) outs(%51 : tensor<1x4x197x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %89 = arith.andi %in, %out : i1
      linalg.yield %89 : i1
    } -> tensor<1x4x197x1xi1>
    %53 = linalg.generic {indexing_maps = [#map7, #map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%52, %cst_4, %47 : tensor<1x4x197x1xi1>, tensor<1x4x197x197xf32>, tensor<1x4x197x197xf32>) outs(%41 : tensor<1x4x197x197xf32>) {
    ^bb0(%in: i1, %in_46: f32, %in_47: f32, %out: f32):
      %89 = arith.select %in, %in_46, %in_47 : f32
      linalg.yield %89 : f32
    } -> tensor<1x4x197x197xf32>
    %collapsed_33 = tensor.collapse_shape %53 [[0, 1], [2], [3]] : tensor<1x4x197x197xf32> into tensor<4x197x197xf32>
    %collapsed_34 = tensor.collapse_shape %extracted_slice_27 [[0, 1, 2], [3], [4]] : tensor<1x1x4x197x48xf32> into tensor<4x197x48xf32>
    %54 = tensor.empty() : tensor<4x197x48xf32>
    %55 = linalg.fill ins(%cst_0 : f32) outs(%54 : tensor<4x197x48xf32>) -> tensor<4x197x48xf32>
    %56 = linalg.batch_matmul ins(%collapsed_33, %collapsed_34 : tensor<4x197x197xf32>, tensor<4x197x48xf32>) outs(%55 : tensor<4x197x48xf32>) -> tensor<4x197x48xf32>
    %expanded_35 = tensor.expand_shape %56 [[0, 1], [2], [3]] output_shape [1, 4, 197, 48] : tensor<4x197x48xf32> into tensor<1x4x197x48xf32>
    %57 = tensor.empty() : tensor<1x197x4x48xf32>
    %transposed_36 = linalg.transpose ins(%expanded_35 : tensor<1x4x197x48xf32>) outs(%57 : tensor<1x197x4x48xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_37 = tensor.collapse_shape %transposed_36 [[0, 1], [2, 3]] : tensor<1x197x4x48xf32> into tensor<197x192xf32>
    %58 = tensor.empty() : tensor<192x192xf32>
    %transposed_38 = linalg.transpose ins(%cst_12 : tensor<192x192xf32>) outs(%58 : tensor<192x192xf32>) permutation = [1, 0] 
    %59 = tensor.empty() : tensor<197x192xf32>
    %60 = linalg.fill ins(%cst_0 : f32) outs(%59 : tensor<197x192xf32>) -> tensor<197x192xf32>
    %61 = linalg.matmul ins(%collapsed_37, %transposed_38 : tensor<197x192xf32>, tensor<192x192xf32>) outs(%60 : tensor<197x192xf32>) -> tensor<197x192xf32>
    %62 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_11 : tensor<192xf32>) outs(%59 : tensor<197x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<197x192xf32>
    %63 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%61, %62 : tensor<197x192xf32>, tensor<197x192xf32>) outs(%59 : tensor<197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.addf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<197x192xf32>
    %expanded_39 = tensor.expand_shape %63 [[0, 1], [2]] output_shape [1, 197, 192] : tensor<197x192xf32> into tensor<1x197x192xf32>
    %64 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %expanded_39 : tensor<1x197x192xf32>, tensor<1x197x192xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.addf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    %65 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%64 : tensor<1x197x192xf32>) outs(%0 : tensor<1x197x192xf64>) {
    ^bb0(%in: f32, %out: f64):
      %89 = arith.extf %in : f32 to f64
      linalg.yield %89 : f64
    } -> tensor<1x197x192xf64>
    %66 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%65 : tensor<1x197x192xf64>) outs(%3 : tensor<1x197x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %89 = arith.addf %in, %out : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x1xf64>
    %67 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%66 : tensor<1x197x1xf64>) outs(%2 : tensor<1x197x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %89 = arith.divf %in, %cst_20 : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x1xf64>
    %68 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%65, %67 : tensor<1x197x192xf64>, tensor<1x197x1xf64>) outs(%0 : tensor<1x197x192xf64>) {
    ^bb0(%in: f64, %in_46: f64, %out: f64):
      %89 = arith.subf %in, %in_46 : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x192xf64>
    %69 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%68, %68 : tensor<1x197x192xf64>, tensor<1x197x192xf64>) outs(%0 : tensor<1x197x192xf64>) {
    ^bb0(%in: f64, %in_46: f64, %out: f64):
      %89 = arith.mulf %in, %in_46 : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x192xf64>
    %70 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%69 : tensor<1x197x192xf64>) outs(%3 : tensor<1x197x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %89 = arith.addf %in, %out : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x1xf64>
    %71 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70 : tensor<1x197x1xf64>) outs(%2 : tensor<1x197x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %89 = arith.divf %in, %cst_20 : f64
      linalg.yield %89 : f64
    } -> tensor<1x197x1xf64>
    %72 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%71 : tensor<1x197x1xf64>) outs(%10 : tensor<1x197x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %89 = arith.truncf %in : f64 to f32
      linalg.yield %89 : f32
    } -> tensor<1x197x1xf32>
    %73 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%64 : tensor<1x197x192xf32>) outs(%12 : tensor<1x197x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.addf %in, %out : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x1xf32>
    %74 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%73 : tensor<1x197x1xf32>) outs(%10 : tensor<1x197x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.divf %in, %cst_21 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x1xf32>
    %75 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%72 : tensor<1x197x1xf32>) outs(%10 : tensor<1x197x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.truncf %cst_19 : f64 to f32
      %90 = arith.addf %in, %89 : f32
      linalg.yield %90 : f32
    } -> tensor<1x197x1xf32>
    %76 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%75 : tensor<1x197x1xf32>) outs(%10 : tensor<1x197x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = math.rsqrt %in : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x1xf32>
    %77 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%64, %74 : tensor<1x197x192xf32>, tensor<1x197x1xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.subf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    %78 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%77, %76 : tensor<1x197x192xf32>, tensor<1x197x1xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.mulf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    %79 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%78, %cst_10 : tensor<1x197x192xf32>, tensor<192xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.mulf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    %80 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%79, %cst_9 : tensor<1x197x192xf32>, tensor<192xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.addf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    %collapsed_40 = tensor.collapse_shape %80 [[0, 1], [2]] : tensor<1x197x192xf32> into tensor<197x192xf32>
    %transposed_41 = linalg.transpose ins(%cst_8 : tensor<192x192xf32>) outs(%58 : tensor<192x192xf32>) permutation = [1, 0] 
    %81 = linalg.matmul ins(%collapsed_40, %transposed_41 : tensor<197x192xf32>, tensor<192x192xf32>) outs(%60 : tensor<197x192xf32>) -> tensor<197x192xf32>
    %82 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_7 : tensor<192xf32>) outs(%59 : tensor<197x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<197x192xf32>
    %83 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%81, %82 : tensor<197x192xf32>, tensor<197x192xf32>) outs(%59 : tensor<197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.addf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<197x192xf32>
    %expanded_42 = tensor.expand_shape %83 [[0, 1], [2]] output_shape [1, 197, 192] : tensor<197x192xf32> into tensor<1x197x192xf32>
    %84 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_42 : tensor<1x197x192xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      %89 = arith.divf %in, %cst_22 : f32
      %90 = math.erf %89 : f32
      %91 = arith.addf %90, %cst_2 : f32
      %92 = arith.mulf %91, %cst_3 : f32
      %93 = arith.mulf %in, %92 : f32
      linalg.yield %93 : f32
    } -> tensor<1x197x192xf32>
    %collapsed_43 = tensor.collapse_shape %84 [[0, 1], [2]] : tensor<1x197x192xf32> into tensor<197x192xf32>
    %transposed_44 = linalg.transpose ins(%cst_6 : tensor<192x192xf32>) outs(%58 : tensor<192x192xf32>) permutation = [1, 0] 
    %85 = linalg.matmul ins(%collapsed_43, %transposed_44 : tensor<197x192xf32>, tensor<192x192xf32>) outs(%60 : tensor<197x192xf32>) -> tensor<197x192xf32>
    %86 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<192xf32>) outs(%59 : tensor<197x192xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<197x192xf32>
    %87 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%85, %86 : tensor<197x192xf32>, tensor<197x192xf32>) outs(%59 : tensor<197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.addf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<197x192xf32>
    %expanded_45 = tensor.expand_shape %87 [[0, 1], [2]] output_shape [1, 197, 192] : tensor<197x192xf32> into tensor<1x197x192xf32>
    %88 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%64, %expanded_45 : tensor<1x197x192xf32>, tensor<1x197x192xf32>) outs(%17 : tensor<1x197x192xf32>) {
    ^bb0(%in: f32, %in_46: f32, %out: f32):
      %89 = arith.addf %in, %in_46 : f32
      linalg.yield %89 : f32
    } -> tensor<1x197x192xf32>
    return %88 : tensor<1x197x192xf32>
  }
}

