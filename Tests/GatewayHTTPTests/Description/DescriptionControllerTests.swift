import HTTPTypes
import Testing

@testable import GatewayHTTP

struct DescriptionControllerTests {
    /// One listener's way to be asked.
    enum Listener: CaseIterable {
        case data
        case admin

        var file: String {
            switch self {
            case .data: "gateway.yaml"
            case .admin: "admin.yaml"
            }
        }

        func ask(
            _ gateway: TestGateway,
            _ method: HTTPRequest.Method = .get,
            _ path: String = "/openapi.yaml",
            headers: [String: String] = [:]
        ) async -> Answer {
            switch self {
            case .data: await gateway.data(method, path, key: nil, headers: headers)
            case .admin: await gateway.admin(method, path, token: nil, headers: headers)
            }
        }
    }

    @Test("Each listener shows its own description, byte by byte and without a key", arguments: Listener.allCases)
    func bytes(listener: Listener) async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await listener.ask(gateway)
            #expect(answer.status == 200)
            #expect(answer.header("Content-Type") == "application/yaml")
            #expect(answer.header("Cache-Control") == "no-cache")
            #expect(answer.header("X-Request-ID")?.isUUIDv7 == true)
            // `==` of strings would take different spellings of one character for the same.
            let bytes = Array(try OpenAPIDocument(listener.file).bytes)
            #expect(Array(answer.body.utf8) == bytes)
            #expect(await listener.ask(gateway, .head).status == 200)
        }
    }

    @Test("A caller that has the description already is spared it", arguments: Listener.allCases)
    func revalidation(listener: Listener) async throws {
        try await TestGateway.run { gateway, _ in
            let tag = try #require(await listener.ask(gateway).header("ETag"))
            #expect(tag.wholeMatch(of: /"[0-9a-f]+-[0-9a-f]+"/) != nil)
            for known in [tag, "W/\(tag)", "*", "\"other\", \(tag)", "\"other\",\t\(tag) "] {
                let answer = await listener.ask(gateway, headers: ["If-None-Match": known])
                #expect(answer.status == 304, "\(known)")
                #expect(answer.body.isEmpty)
                #expect(answer.header("ETag") == tag)
                #expect(answer.header("Content-Type") == nil)
            }
            for unknown in ["\"other\"", String(tag.dropLast()), "\(tag)x", "W/", ",", "**"] {
                #expect(await listener.ask(gateway, headers: ["If-None-Match": unknown]).status == 200, "\(unknown)")
            }
        }
    }

    @Test("The two descriptions have different tags")
    func tags() {
        #expect(APIDescription.gateway.entityTag != APIDescription.admin.entityTag)
    }

    @Test("An answer to HEAD has the length of the description and none of its bytes")
    func head() async throws {
        try await TestGateway.run { gateway, _ in
            try await LiveListener.run(gateway) { listener in
                let answer = try await listener.ask("HEAD", "/openapi.yaml", headers: [:], body: [])
                #expect(answer.status == 200)
                #expect(answer.body.isEmpty)
                let length = try OpenAPIDocument("gateway.yaml").bytes.count
                #expect(answer.fields["content-length"] == String(length))
            }
        }
    }
}
