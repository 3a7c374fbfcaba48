"""The viewer of pictures, and the canvas that it zooms and pans."""
