import GatewayCore
import GatewayTestKit
import Testing

@Suite("LoadShedder")
struct LoadShedderTests {
    /// A request, the load before it, and the expected refusal.
    struct Case: Sendable {
        /// Requests in flight of other tenants, one each. `own` counts those of the request's tenant.
        var others: Int
        var own = 0
        var isUrgent = false
        var lagMilliseconds = 0
        var refusal: LoadShedder.Reason?
    }

    @Test(
        "Admission depends on the requests in flight, the tenant's share, priority and lag",
        arguments: [
            Case(others: 0),
            Case(others: 7, own: 0),
            Case(others: 8, refusal: .reserve),
            Case(others: 8, isUrgent: true),
            Case(others: 9, isUrgent: true),
            Case(others: 10, refusal: .inFlight),
            Case(others: 10, isUrgent: true, refusal: .inFlight),
            Case(others: 0, own: 4),
            Case(others: 0, own: 5, refusal: .tenantShare),
            Case(others: 0, own: 5, isUrgent: true, refusal: .tenantShare),
            Case(others: 3, own: 5, refusal: .reserve),
            Case(others: 5, own: 5, refusal: .inFlight),
            Case(others: 2, lagMilliseconds: 80),
            Case(others: 2, lagMilliseconds: 81, refusal: .lag),
            Case(others: 1, lagMilliseconds: 5_000),
            Case(others: 2, isUrgent: true, lagMilliseconds: 81),
            Case(others: 2, isUrgent: true, lagMilliseconds: 100),
            Case(others: 2, isUrgent: true, lagMilliseconds: 101, refusal: .lag),
        ]
    )
    func table(expected: Case) {
        let shedder = LoadShedder(limits: LoadShedder.Limits(maxInFlight: 10, maxLag: .milliseconds(100)))
        for _ in 0..<expected.others {
            #expect(shedder.enter(LoadShedder.TenantLoad(), isUrgent: true, lag: .zero) == nil)
        }
        let tenant = LoadShedder.TenantLoad()
        for _ in 0..<expected.own {
            #expect(shedder.enter(tenant, isUrgent: true, lag: .zero) == nil)
        }
        let lag = Duration.milliseconds(expected.lagMilliseconds)
        #expect(shedder.enter(tenant, isUrgent: expected.isUrgent, lag: lag) == expected.refusal)
        let taken = expected.refusal == nil ? 1 : 0
        #expect(shedder.inFlight == expected.others + expected.own + taken)
        #expect(tenant.inFlight == expected.own + taken)
    }

    @Test("Before a request is read, the total, the tenant's share and the lag are checked, but not the reserve")
    func beforeReading() {
        let shedder = LoadShedder(limits: LoadShedder.Limits(maxInFlight: 10, maxLag: .milliseconds(100)))
        let tenant = LoadShedder.TenantLoad()
        #expect(shedder.refusal(of: nil, lag: .zero) == nil)
        #expect(shedder.refusal(of: tenant, lag: .milliseconds(100)) == nil)
        #expect(shedder.refusal(of: tenant, lag: .milliseconds(101)) == nil)
        for _ in 0..<5 { #expect(shedder.enter(tenant, isUrgent: false, lag: .zero) == nil) }
        #expect(shedder.refusal(of: tenant, lag: .zero) == .tenantShare)
        #expect(shedder.refusal(of: LoadShedder.TenantLoad(), lag: .milliseconds(100)) == nil)
        #expect(shedder.refusal(of: LoadShedder.TenantLoad(), lag: .milliseconds(101)) == .lag)
        for _ in 0..<4 { #expect(shedder.enter(LoadShedder.TenantLoad(), isUrgent: true, lag: .zero) == nil) }
        #expect(shedder.refusal(of: nil, lag: .zero) == nil)
        #expect(shedder.enter(LoadShedder.TenantLoad(), isUrgent: true, lag: .zero) == nil)
        #expect(shedder.refusal(of: nil, lag: .zero) == .inFlight)
    }

    @Test("A list counts as its calls, is admitted while any room is left, and frees all of it when it leaves")
    func lists() {
        let shedder = LoadShedder(limits: LoadShedder.Limits(maxInFlight: 20, maxLag: .milliseconds(100)))
        let (tenant, other) = (LoadShedder.TenantLoad(), LoadShedder.TenantLoad())
        for _ in 0..<2 { #expect(shedder.enter(tenant, calls: 5, isUrgent: false, lag: .zero) == nil) }
        #expect(shedder.enter(tenant, calls: 5, isUrgent: true, lag: .zero) == .tenantShare)
        #expect(tenant.inFlight == 10)
        #expect(shedder.enter(other, calls: 100, isUrgent: false, lag: .zero) == nil)
        #expect(shedder.inFlight == 110)
        #expect(shedder.enter(LoadShedder.TenantLoad(), isUrgent: true, lag: .zero) == .inFlight)
        shedder.leave(other, calls: 100)
        for _ in 0..<2 { shedder.leave(tenant, calls: 5) }
        #expect(shedder.inFlight == 0)
        #expect(tenant.inFlight == 0 && other.inFlight == 0)
    }

    @Test(
        "A tenant's share is half the maximum but at least one, and the normal limit four fifths rounded up",
        arguments: [(1, 1, 1), (2, 1, 2), (7, 3, 6), (4_096, 2_048, 3_277)]
    )
    func parts(maxInFlight: Int, perTenant: Int, normal: Int) {
        let limits = LoadShedder.Limits(maxInFlight: maxInFlight, maxLag: .zero)
        #expect(limits.maxInFlightPerTenant == perTenant)
        #expect(limits.maxInFlightForNormal == normal)
    }

    @Test("Random traffic exceeds no bound and leaves no request counted", arguments: 1...20)
    func randomTraffic(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let limit = Int.random(in: 1...40, using: &random)
        let limits = LoadShedder.Limits(maxInFlight: limit, maxLag: .milliseconds(5))
        let shedder = LoadShedder(limits: limits)
        let tenants = (0..<Int.random(in: 1...5, using: &random)).map { _ in LoadShedder.TenantLoad() }
        var present: [(tenant: Int, isUrgent: Bool)] = []
        var refusals: Set<LoadShedder.Reason> = []
        for _ in 0..<3_000 {
            if !present.isEmpty, Int.random(in: 0..<100, using: &random) < 45 {
                let index = Int.random(in: present.indices, using: &random)
                shedder.leave(tenants[present.remove(at: index).tenant])
            } else {
                let tenant = Int.random(in: tenants.indices, using: &random)
                let isUrgent = Bool.random(using: &random)
                let own = present.count { $0.tenant == tenant }
                let refusal = shedder.enter(tenants[tenant], isUrgent: isUrgent, lag: .zero)
                let fits =
                    present.count < (isUrgent ? limit : limits.maxInFlightForNormal)
                    && own < limits.maxInFlightPerTenant
                #expect((refusal == nil) == fits)
                if let refusal { refusals.insert(refusal) } else { present.append((tenant, isUrgent)) }
            }
            #expect(shedder.inFlight == present.count)
            #expect(shedder.inFlight <= limit)
            for (index, tenant) in tenants.enumerated() {
                #expect(tenant.inFlight == present.count { $0.tenant == index })
                #expect(tenant.inFlight <= max(1, limit / 2))
            }
        }
        #expect(!refusals.isEmpty)
        for request in present { shedder.leave(tenants[request.tenant]) }
        #expect(shedder.inFlight == 0)
        #expect(tenants.allSatisfy { $0.inFlight == 0 })
    }

    @Test("Concurrent requests do not exceed the tenant's share and leave no request counted")
    func concurrentTraffic() async {
        let shedder = LoadShedder(limits: LoadShedder.Limits(maxInFlight: 10, maxLag: .milliseconds(5)))
        let tenant = LoadShedder.TenantLoad()
        let taken = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var taken = 0
                    for _ in 0..<5_000 where shedder.enter(tenant, isUrgent: true, lag: .zero) == nil {
                        if shedder.inFlight < 1 || tenant.inFlight < 1 { return -1 }
                        taken += 1
                        shedder.leave(tenant)
                    }
                    return taken
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(taken.allSatisfy { $0 > 0 })
        #expect(shedder.inFlight == 0)
        #expect(tenant.inFlight == 0)
        let held = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask { (0..<100).count { _ in shedder.enter(tenant, isUrgent: true, lag: .zero) == nil } }
            }
            return await group.reduce(0, +)
        }
        #expect(held == 5)
        #expect(shedder.inFlight == 5)
    }
}
