"""Cards to lend: a verification that one machine wants and another, which has the GPU, runs."""
