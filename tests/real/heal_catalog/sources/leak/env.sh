# what people put here when their card was new
export HSA_OVERRIDE_GFX_VERSION=11.0
