"""python -m gfx_smoke"""

from gfx_smoke import main

main()
