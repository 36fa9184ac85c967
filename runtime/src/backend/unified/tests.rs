use super::*;

#[test]
fn locations_are_the_drivers_numbers() {
    let raw = |location: Location| (location.raw().kind, location.raw().id);
    assert_eq!(raw(Location::Device(3)), (1, 3));
    assert_eq!(raw(Location::Host), (2, 0));
    assert_eq!(raw(Location::HostNuma(1)), (3, 1));
    assert_eq!(raw(Location::HostNumaCurrent), (4, 0));
    for location in [Location::Device(3), Location::HostNuma(1), Location::Host] {
        let raw = location.raw();
        assert_eq!(Location::from_raw(raw.kind.cast_signed(), raw.id), Some(location));
    }
    assert_eq!(Location::from_raw(0, 5), None);
    assert_eq!(Location::from_raw(-1, 5), None);
    let processors = [-2, -1, 0, 7].map(Processor::from_raw);
    let device = |ordinal| Some(Processor::Device(ordinal));
    assert_eq!(processors, [None, Some(Processor::Host), device(0), device(7)]);
}
