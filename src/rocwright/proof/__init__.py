"""What artifacts were made from, in forms that others read: SBOM (CycloneDX), provenance (in-toto, SLSA)."""
