//! The control path: what is granted, and what is refused with which errno.

use super::host::{BASE, Host, QpOptions};
use crate::hca::verbs::{access, qp_type, srq_attribute};
use crate::hca::{CreateCq, CreateSrq, Errno, Handle, HcaConfig, Limits, RegisterMemory, SrqKind};

#[test]
fn regions_are_checked_as_the_kernel_does() {
    let mut host = Host::new();
    let start = host.alloc(8192);
    let good = RegisterMemory { pd: host.pd, start, length: 100, hca_va: start, access: 0 };
    let mut register = |request: RegisterMemory| {
        host.hca.register_memory(host.context, &request).map(|registered| registered.lkey != 0)
    };
    assert_eq!(register(good), Ok(true));
    assert_eq!(register(RegisterMemory { access: access::REMOTE_WRITE, ..good }), Err(Errno::INVALID));
    assert_eq!(register(RegisterMemory { access: access::REMOTE_ATOMIC, ..good }), Err(Errno::INVALID));
    assert_eq!(register(RegisterMemory { access: access::REMOTE_READ, ..good }), Ok(true));
    assert_eq!(register(RegisterMemory { access: access::ON_DEMAND, ..good }), Err(Errno::INVALID));
    assert_eq!(register(RegisterMemory { access: 1 << 12, ..good }), Err(Errno::INVALID));
    assert_eq!(register(RegisterMemory { access: 1 << 20, ..good }), Ok(true), "relaxed ordering");
    assert_eq!(register(RegisterMemory { length: 0, ..good }), Err(Errno::INVALID));
    assert_eq!(register(RegisterMemory { length: u64::MAX, ..good }), Err(Errno::INVALID));
    assert_eq!(register(RegisterMemory { hca_va: start + 1, ..good }), Err(Errno::INVALID));
    assert_eq!(register(RegisterMemory { hca_va: start + 4096, ..good }), Ok(true));
    assert_eq!(register(RegisterMemory { start: 64, hca_va: 64, ..good }), Err(Errno::FAULT));
    assert_eq!(register(RegisterMemory { pd: Handle(999), ..good }), Err(Errno::INVALID));
}

#[test]
fn keys_are_never_the_invalid_one_and_differ() {
    let mut host = Host::new();
    let mut keys: Vec<u32> = (0..1000).map(|_| host.register(BASE, 64, 0).unwrap()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 1000);
    assert!(!keys.contains(&0x100) && !keys.contains(&0));
}

#[test]
fn completion_queues_are_checked_and_rounded() {
    let mut host = Host::new();
    let buffer = host.alloc(128 * 64);
    let doorbell = host.alloc(8);
    let good =
        CreateCq { user_handle: 1, entries: 100, vector: 0, channel: None, buffer, doorbell, cqe_size: 64 };
    let mut create =
        |request: CreateCq| host.hca.create_cq(host.context, &request).map(|created| created.entries);
    assert_eq!(create(good), Ok(127));
    assert_eq!(create(CreateCq { entries: 127, ..good }), Ok(127));
    assert_eq!(create(CreateCq { cqe_size: 32, ..good }), Err(Errno::INVALID));
    assert_eq!(create(CreateCq { vector: 100, ..good }), Err(Errno::INVALID));
    assert_eq!(create(CreateCq { entries: u32::MAX, ..good }), Err(Errno::INVALID));
    assert_eq!(create(CreateCq { doorbell: doorbell + 2, ..good }), Err(Errno::INVALID));
    assert_eq!(create(CreateCq { buffer: 8, ..good }), Err(Errno::FAULT));
    assert_eq!(create(CreateCq { doorbell: 8, ..good }), Err(Errno::FAULT));
    assert_eq!(host.bytes(doorbell + 4, 4), [0xff; 4], "not armed");
    assert_eq!(host.hca.resize_cq(host.context, Handle(1)), Err(Errno::NOT_SUPPORTED));
    assert_eq!(host.hca.resize_cq(host.context, Handle(99)), Err(Errno::INVALID));
}

#[test]
fn srqs_are_checked_and_limits_must_be_below_their_size() {
    let mut host = Host::new();
    let (buffer, doorbell) = (host.alloc(8192), host.alloc(8));
    let good = CreateSrq {
        user_handle: 1,
        pd: host.pd,
        kind: SrqKind::Basic,
        max_wr: 100,
        max_sge: 3,
        limit: 0,
        buffer,
        doorbell,
        uidx: 0,
    };
    let mut create = |request: CreateSrq| host.hca.create_srq(host.context, &request);
    assert_eq!(create(CreateSrq { max_wr: 0, ..good }).err(), Some(Errno::INVALID));
    assert_eq!(create(CreateSrq { max_wr: 40_000, ..good }).err(), Some(Errno::INVALID));
    assert_eq!(create(CreateSrq { max_sge: 100, ..good }).err(), Some(Errno::INVALID));
    assert_eq!(create(CreateSrq { uidx: 1 << 24, ..good }).err(), Some(Errno::INVALID));
    assert_eq!(create(CreateSrq { buffer: 0, ..good }).err(), Some(Errno::FAULT));
    let no_cq = SrqKind::TagMatching { tags: 4, cq: Handle(77) };
    assert_eq!(create(CreateSrq { kind: no_cq, ..good }).err(), Some(Errno::INVALID));
    let created = create(good).unwrap();
    assert_eq!((created.max_wr, created.max_sge), (127, 3));
    let srq = created.handle;
    let mut modify = |mask, limit| host.hca.modify_srq(host.context, srq, mask, limit);
    assert_eq!(modify(srq_attribute::MAX_WR, 0), Err(Errno::INVALID));
    assert_eq!(modify(srq_attribute::LIMIT, 128), Err(Errno::INVALID));
    assert_eq!(modify(0, 128), Ok(()));
    assert_eq!(host.hca.query_srq(host.context, srq).unwrap().max_wr, 127);
    assert_eq!(host.hca.query_srq(host.context, Handle(99)), Err(Errno::INVALID));
}

#[test]
fn qps_of_other_types_and_sizes_are_refused() {
    let mut host = Host::new();
    let cq = host.cq(16);
    let good = QpOptions::default();
    let mut try_qp = |options| host.try_qp(&cq, options).map(|qp| qp.qpn).err();
    assert_eq!(try_qp(good), None);
    assert_eq!(try_qp(QpOptions { send: 0, receive: 0, ..good }), None);
    assert_eq!(try_qp(QpOptions { qp_type: qp_type::UC, ..good }), Some(Errno::NOT_SUPPORTED));
    assert_eq!(try_qp(QpOptions { qp_type: 9, ..good }), Some(Errno::NOT_SUPPORTED), "XRC");
    assert_eq!(try_qp(QpOptions { qp_type: 8, ..good }), Some(Errno::NOT_PERMITTED), "raw packet");
    assert_eq!(try_qp(QpOptions { send: 3, ..good }), Some(Errno::INVALID));
    assert_eq!(try_qp(QpOptions { receive: 3, ..good }), Some(Errno::INVALID));
    assert_eq!(try_qp(QpOptions { srq: Some(Handle(9)), ..good }), Some(Errno::INVALID));
    let tags = SrqKind::TagMatching { tags: 1, cq: cq.handle };
    let srq = Some(host.srq_of(63, tags).unwrap().handle);
    let datagram = QpOptions { qp_type: qp_type::UD, srq, receive: 0, ..good };
    assert_eq!(host.try_qp(&cq, datagram).map(|qp| qp.qpn).err(), Some(Errno::INVALID));
}

#[test]
fn limits_of_numbers_are_enomem() {
    let limits =
        Limits { qps: 1, cqs: 2, memory_regions: 2, protection_domains: 1, srqs: 1, ..Limits::default() };
    let mut host = Host::with(HcaConfig { limits, ..HcaConfig::default() });
    assert_eq!(host.hca.alloc_pd(host.context).err(), Some(Errno::NO_MEMORY));
    assert!(host.register(BASE, 64, 0).is_ok());
    assert_eq!(host.register(BASE, 64, 0), Err(Errno::NO_MEMORY));
    let cq = host.cq(16);
    host.cq(16);
    host.srq(7);
    assert_eq!(host.srq_of(7, SrqKind::Basic).map(|srq| srq.handle).err(), Some(Errno::NO_MEMORY));
    host.qp(&cq, QpOptions::default());
    assert_eq!(host.try_qp(&cq, QpOptions::default()).map(|qp| qp.qpn).err(), Some(Errno::NO_MEMORY));
}

#[test]
fn objects_in_use_are_busy_and_those_of_others_are_not_there() {
    let mut host = Host::new();
    let cq = host.cq(16);
    let srq = host.srq(7);
    let options = QpOptions { srq: Some(srq.handle), receive: 0, ..QpOptions::default() };
    let qp = host.qp(&cq, options);
    let (context, pd) = (host.context, host.pd);
    assert_eq!(host.hca.destroy_cq(context, cq.handle), Err(Errno::BUSY));
    assert_eq!(host.hca.destroy_srq(context, srq.handle), Err(Errno::BUSY));
    assert_eq!(host.hca.dealloc_pd(context, pd), Err(Errno::BUSY));
    let stranger = host.hca.open_context();
    assert_eq!(host.hca.destroy_qp(stranger, qp.handle), Err(Errno::INVALID));
    assert_eq!(host.hca.destroy_cq(stranger, cq.handle), Err(Errno::INVALID));
    assert_eq!(host.hca.destroy_srq(stranger, srq.handle), Err(Errno::INVALID));
    assert_eq!(host.hca.dealloc_pd(stranger, pd), Err(Errno::INVALID));
    assert_eq!(host.hca.deregister_memory(stranger, Handle(host.key)), Err(Errno::INVALID));
    host.hca.destroy_qp(context, qp.handle).unwrap();
    host.hca.destroy_srq(context, srq.handle).unwrap();
    host.hca.destroy_cq(context, cq.handle).unwrap();
    assert_eq!(host.hca.dealloc_pd(context, pd), Err(Errno::BUSY), "a region");
    host.hca.deregister_memory(context, Handle(host.key)).unwrap();
    host.hca.dealloc_pd(context, pd).unwrap();
    assert_eq!(host.hca.dealloc_pd(context, pd), Err(Errno::INVALID));
}

#[test]
fn closing_a_context_destroys_what_it_holds_and_nothing_else() {
    let mut host = Host::new();
    let cq = host.cq(16);
    let (a, _b) = host.pair(&cq);
    host.srq(7);
    let other = host.hca.open_context();
    let pd = host.hca.alloc_pd(other).unwrap().handle;
    host.hca.close_context(host.context);
    assert_eq!(host.hca.query_qp(host.context, a.handle), Err(Errno::INVALID));
    assert_eq!(host.hca.alloc_pd(host.context).err(), Some(Errno::INVALID));
    assert!(host.hca.steps().is_empty());
    host.hca.dealloc_pd(other, pd).unwrap();
}

#[test]
fn device_and_port_say_what_was_configured() {
    let config = HcaConfig { ports: 2, lid: 17, mtu: 4, ..HcaConfig::default() };
    let host = Host::with(config);
    let device = host.hca.query_device();
    assert_eq!((device.phys_port_cnt, device.vendor_part_id), (2, 0x1017));
    assert_eq!((device.tm.max_num_tags, device.tm.flags, device.tm.max_rndv_hdr_size), (2047, 1, 64));
    let port = host.hca.query_port(2).unwrap();
    assert_eq!((port.lid, port.active_mtu, port.state), (17, 4, 4));
    assert_eq!(host.hca.query_port(3), Err(Errno::INVALID));
    assert_eq!(host.hca.gid(1, 0), Ok(config.gid));
    assert_eq!(host.hca.gid(1, 1), Err(Errno::INVALID));
    assert_eq!(host.hca.pkey(1, 0), Ok(0xffff));
    assert_eq!(host.hca.pkey(0, 0), Err(Errno::INVALID));
    let without = Host::with(HcaConfig { rendezvous: false, ..config });
    let tm = without.hca.query_device().tm;
    assert_eq!((tm.max_num_tags, tm.flags, tm.max_rndv_hdr_size), (2047, 0, 0));
}
