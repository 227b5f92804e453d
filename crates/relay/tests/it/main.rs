//! Integration tests of the carriers, through their public interface.

mod feed;
mod feed_scene;
mod scripted_feed;
