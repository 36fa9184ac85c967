//! A list whose places are reused.

use std::ops::{Index, IndexMut};

#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    /// Puts an item somewhere and says where.
    pub(super) fn insert(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = Some(item);
                place
            }
            None => {
                self.places.push(Some(item));
                // Four thousand million items do not fit the memory.
                (self.places.len() - 1) as u32
            }
        }
    }

    pub(super) fn remove(&mut self, place: u32) {
        self.places[place as usize] = None;
        self.free.push(place);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten()
    }

    /// How many items there are.
    pub(super) fn live(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// How many there were at most.
    pub(super) fn capacity(&self) -> usize {
        self.places.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        match &self.places[place as usize] {
            Some(item) => item,
            None => unreachable!("place {place} is empty"),
        }
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        match &mut self.places[place as usize] {
            Some(item) => item,
            None => unreachable!("place {place} is empty"),
        }
    }
}
