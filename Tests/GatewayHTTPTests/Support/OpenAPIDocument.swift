import Foundation
import GatewayTestKit
import Testing
import Yams

@testable import GatewayHTTP

/// One of the project's OpenAPI descriptions, read by an independent YAML parser.
struct OpenAPIDocument {
    private static let methods: Set<String> = ["get", "put", "post", "delete", "head", "options", "patch", "trace"]

    let bytes: Data
    private let root: Node

    /// Reads a file of the folder `openapi`.
    init(_ name: String) throws {
        self.bytes = try Data(contentsOf: .inRepository("openapi/\(name)"))
        self.root = try #require(try Yams.compose(yaml: String(decoding: self.bytes, as: UTF8.self)))
    }

    /// Every described method and path, with its node.
    private var operations: [(route: ServedRoute, node: Node)] {
        (self.root["paths"]?.mapping).map(Array.init)?
            .flatMap { path, item in
                (item.mapping.map(Array.init) ?? [])
                    .compactMap { method, operation in
                        guard let method = method.string, Self.methods.contains(method) else { return nil }
                        return (ServedRoute(method: method.uppercased(), template: path.string ?? ""), operation)
                    }
            } ?? []
    }

    var routes: [ServedRoute] { self.operations.map(\.route) }

    /// The codes that a problem can have.
    var codes: [String] {
        self.root["components"]?["schemas"]?["Code"]?["enum"]?.sequence?.compactMap(\.string) ?? []
    }

    /// The scopes that each operation's key needs, the route's own first; `nil` for an operation without credentials.
    var scopes: [ServedRoute: [String]?] {
        let common = self.root["security"]
        return self.operations.reduce(into: [:]) { scopes, operation in
            let alternatives = (operation.node["security"] ?? common)?.sequence ?? []
            let named = alternatives.flatMap { $0.mapping.map(Array.init) ?? [] }
                .map { $0.value.sequence?.compactMap(\.string) ?? [] }
            // A facade accepts a key in several headers.
            let all = named.joined().reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
            scopes[operation.route] = .some(named.isEmpty ? nil : all)
        }
    }
}
