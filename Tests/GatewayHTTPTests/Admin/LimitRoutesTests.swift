import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct LimitRoutesTests {
    private static let path = "/admin/v1/tenants/demo/limits"

    private static let defaults: JSON = [
        "tenant": [["rate": 9_000, "per_s": 1, "burst": 9_000]],
        "device": [["rate": 180, "per_s": 60, "burst": 60], ["rate": 4_000, "per_s": 3_600, "burst": 1_000]],
        "device_collapsible": [["rate": 1, "per_s": 180, "burst": 20]],
        "topic": [["rate": 900, "per_s": 60, "burst": 100]],
        "own": [],
    ]

    @Test("A tenant without its own limits shows the defaults")
    func defaultLimits() async throws {
        try await TestGateway.run { gateway, _ async throws in
            let answer = await gateway.admin(.get, Self.path)
            #expect(answer.status == 200)
            #expect(try answer.json == Self.defaults)
        }
    }

    @Test("A tenant's own limits replace whole scopes; absent scopes return to the default")
    func replace() async throws {
        try await TestGateway.run { gateway, key in
            let put = await gateway.admin(
                .put,
                Self.path,
                body: #"{"device":[{"rate":1,"per_s":60,"burst":1}],"topic":[{"burst":3,"rate":2,"per_s":1}]}"#
            )
            #expect(put.status == 200)
            var expected = Self.defaults
            expected["device"] = [["rate": 1, "per_s": 60, "burst": 1]]
            expected["topic"] = [["rate": 2, "per_s": 1, "burst": 3]]
            expected["own"] = ["device", "topic"]
            let json = try put.json
            #expect(json == expected)
            #expect(try await gateway.admin(.get, Self.path).json == expected)
            #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 200)
            #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 429)

            let back = await gateway.admin(.put, Self.path, body: #"{"tenant":[{"rate":5,"per_s":1,"burst":5}]}"#)
            expected = Self.defaults
            expected["tenant"] = [["rate": 5, "per_s": 1, "burst": 5]]
            expected["own"] = ["tenant"]
            #expect(try back.json == expected)
            #expect(try await gateway.admin(.put, Self.path, body: "{}").json == Self.defaults)
            #expect(try await gateway.admin(.get, "/admin/v1/tenants/other/limits").json == Self.defaults)
        }
    }

    @Test("A merge patch changes the scopes that it names, and null returns them to the default")
    func patch() async throws {
        try await TestGateway.run { gateway, _ async throws in
            var expected = Self.defaults
            for (body, changed) in [
                (
                    #"{"topic":[{"burst":3,"rate":2,"per_s":1}]}"#,
                    { $0["topic"] = [["rate": 2, "per_s": 1, "burst": 3]] }
                ),
                (
                    #"{"tenant":[{"burst":9,"rate":9,"per_s":1}]}"#,
                    { $0["tenant"] = [["rate": 9, "per_s": 1, "burst": 9]] }
                ),
                (#"{"topic":null,"device":null}"#, { $0["topic"] = Self.defaults["topic"] }),
            ] as [(String, (inout JSON) -> Void)] {
                changed(&expected)
                let answer = try await gateway.admin(.patch, Self.path, body: body).json
                #expect(answer.without("own") == expected.without("own"), "\(body)")
            }
            #expect(try await gateway.admin(.get, Self.path).json["own"] == ["tenant"])
            try await gateway.admin(.patch, Self.path, body: #"{"topic":[]}"#).expectProblem(422, "invalid_field")
        }
    }
}
