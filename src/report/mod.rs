//! L3: one view model, many small renderers.
