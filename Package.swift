// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "fcm-gateway",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "fcm-gateway", targets: ["FCMGateway"]),
        .executable(name: "fcm-gateway-dev", targets: ["FCMGatewayDev"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser.git", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-asn1.git", exact: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates.git", exact: "1.21.1"),
        .package(url: "https://github.com/apple/swift-crypto.git", exact: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-types.git", exact: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log.git", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics.git", exact: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio.git", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras.git", exact: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-http2.git", exact: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", exact: "2.37.6"),
        .package(url: "https://github.com/groue/GRDB.swift.git", exact: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", exact: "2.28.1"),
        .package(url: "https://github.com/jpsim/Yams.git", exact: "6.2.2"),
        .package(url: "https://github.com/swift-server/async-http-client.git", exact: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", exact: "2.13.0"),
        .package(url: "https://github.com/vapor/jwt-kit.git", exact: "5.7.1"),
    ],
    targets: [
        // Level 0: know nothing of the gateway.
        .target(
            name: "StrictJSON",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio")
            ]
        ),
        .target(
            name: "EventLoopHTTP",
            dependencies: [
                "CNGHTTP2",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOExtras", package: "swift-nio-extras"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ]
        ),
        .target(
            name: "PrometheusMetrics",
            dependencies: [
                .product(name: "CoreMetrics", package: "swift-metrics")
            ]
        ),
        .target(
            name: "RedisClient",
            dependencies: [
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),

        .target(
            name: "GatewaySupport",
            dependencies: [
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .target(name: "CLibPQ"),
        .systemLibrary(
            name: "CNGHTTP2",
            pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"]), .brew(["libnghttp2"])]
        ),
        .systemLibrary(name: "CProcess"),
        .target(name: "CFiles"),

        // Level 1: the protocols, and the audit, which knows none of them.
        .target(
            name: "GatewayAudit",
            dependencies: [
                "GatewaySupport",
                "StrictJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .target(
            name: "FCMModel",
            dependencies: [
                "GatewaySupport",
                "StrictJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]
        ),

        // Level 2: the gateway's rules, and a fake FCM.
        .target(
            name: "GatewayCore",
            dependencies: [
                "FCMModel",
                "GatewayAudit",
                "GatewaySupport",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .target(
            name: "FCMEmulator",
            dependencies: [
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "JWTKit", package: "jwt-kit"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP2", package: "swift-nio-extras"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ]
        ),

        // Level 3: the adapters.
        .target(
            name: "GatewayUpstream",
            dependencies: [
                "EventLoopHTTP",
                "FCMModel",
                "GatewayCore",
                "StrictJSON",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "JWTKit", package: "jwt-kit"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .target(
            name: "GatewayStorage",
            dependencies: [
                "CLibPQ",
                "GatewayCore",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]
        ),
        .target(
            name: "RedisLimits",
            dependencies: [
                "GatewayCore",
                "RedisClient",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .target(
            name: "GatewayTracing",
            dependencies: [
                "EventLoopHTTP",
                "GatewayCore",
                "StrictJSON",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .target(
            name: "GatewayHTTP",
            dependencies: [
                "CFiles",
                "EventLoopHTTP",
                "FCMModel",
                "GatewayCore",
                "StrictJSON",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]
        ),

        // Level 4: the gateway as `serve` runs it: configuration, composition, logging.
        .target(
            name: "GatewayService",
            dependencies: [
                "CProcess",
                "EventLoopHTTP",
                "GatewayCore",
                "GatewayHTTP",
                "GatewayStorage",
                "GatewayTracing",
                "GatewayUpstream",
                "PrometheusMetrics",
                "RedisClient",
                "RedisLimits",
                "StrictJSON",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "Yams", package: "Yams"),
            ]
        ),

        // Level 5: the executables.
        .executableTarget(
            name: "FCMGateway",
            dependencies: [
                "EventLoopHTTP",
                "FCMModel",
                "GatewayCore",
                "GatewayService",
                "GatewayStorage",
                "GatewayUpstream",
                "StrictJSON",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOFoundationCompat", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "Yams", package: "Yams"),
            ]
        ),
        .executableTarget(
            name: "FCMGatewayDev",
            dependencies: [
                "EventLoopHTTP",
                "FCMEmulator",
                "GatewayCore",
                "GatewayService",
                "GatewayUpstream",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]
        ),

        .executableTarget(
            name: "Micro",
            dependencies: [
                "EventLoopHTTP",
                "FCMModel",
                "GatewayCore",
                "GatewayHTTP",
                "GatewayStorage",
                "GatewayTestKit",
                "StrictJSON",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Benchmarks/Micro"
        ),

        // Tests.
        .testTarget(
            name: "StrictJSONTests",
            dependencies: ["StrictJSON", .product(name: "NIOCore", package: "swift-nio")]
        ),
        .testTarget(
            name: "EventLoopHTTPTests",
            dependencies: [
                "EventLoopHTTP",
                "GatewayTestKit",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        .testTarget(
            name: "FCMModelTests",
            dependencies: [
                "FCMModel",
                "GatewaySupport",
                "StrictJSON",
                "VectorTestKit",
                .product(name: "NIOCore", package: "swift-nio"),
            ]
        ),
        .target(
            name: "VectorTestKit",
            dependencies: ["StrictJSON", .product(name: "NIOCore", package: "swift-nio")],
            path: "Tests/VectorTestKit"
        ),
        .target(
            name: "GatewayTestKit",
            dependencies: [
                "FCMModel",
                "GatewayCore",
                "GatewayStorage",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ],
            path: "Tests/GatewayTestKit"
        ),
        .target(name: "ProcessTestKit", path: "Tests/ProcessTestKit"),
        .testTarget(
            name: "GatewayAuditTests",
            dependencies: [
                "GatewayAudit",
                "GatewayTestKit",
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
            ]
        ),
        .testTarget(
            name: "GatewayCoreTests",
            dependencies: [
                "FCMModel",
                "GatewayCore",
                "GatewaySupport",
                "GatewayTestKit",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
            ]
        ),
        .testTarget(
            name: "GatewayUpstreamTests",
            dependencies: [
                "EventLoopHTTP",
                "FCMEmulator",
                "FCMModel",
                "GatewayCore",
                "GatewayTestKit",
                "GatewayUpstream",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "JWTKit", package: "jwt-kit"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .testTarget(
            name: "GatewayHTTPTests",
            dependencies: [
                "EventLoopHTTP",
                "FCMModel",
                "GatewayCore",
                "GatewayHTTP",
                "GatewayTestKit",
                "StrictJSON",
                "VectorTestKit",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "Yams", package: "Yams"),
            ]
        ),
        .testTarget(
            name: "GatewayTracingTests",
            dependencies: [
                "EventLoopHTTP",
                "GatewayCore",
                "GatewayTestKit",
                "GatewayTracing",
                "StrictJSON",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
            ]
        ),
        .testTarget(
            name: "GatewayStorageTests",
            dependencies: [
                "GatewayCore",
                "GatewayStorage",
                "GatewayTestKit",
                "ProcessTestKit",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ]
        ),
        .testTarget(
            name: "PrometheusMetricsTests",
            dependencies: [
                "ProcessTestKit",
                "PrometheusMetrics",
                .product(name: "CoreMetrics", package: "swift-metrics"),
            ]
        ),
        .testTarget(
            name: "RedisClientTests",
            dependencies: [
                "GatewayTestKit",
                "ProcessTestKit",
                "RedisClient",
                "RedisTestKit",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        .target(name: "RedisTestKit", dependencies: ["ProcessTestKit"], path: "Tests/RedisTestKit"),
        .testTarget(
            name: "RedisLimitsTests",
            dependencies: [
                "GatewayCore",
                "GatewayTestKit",
                "ProcessTestKit",
                "RedisClient",
                "RedisLimits",
                "RedisTestKit",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]
        ),
        .testTarget(
            name: "FCMEmulatorTests",
            dependencies: [
                "FCMEmulator",
                "VectorTestKit",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "JWTKit", package: "jwt-kit"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .testTarget(
            name: "GatewayServiceTests",
            dependencies: [
                "EventLoopHTTP",
                "FCMModel",
                "GatewayCore",
                "GatewayHTTP",
                "GatewayService",
                "GatewayStorage",
                "GatewayTestKit",
                "GatewayTracing",
                "GatewayUpstream",
                "PrometheusMetrics",
                "StrictJSON",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
            ]
        ),
        .testTarget(
            name: "FCMGatewayTests",
            dependencies: [
                "EventLoopHTTP",
                "FCMGateway",
                "FCMModel",
                "GatewayCore",
                "GatewayService",
                "GatewayStorage",
                "GatewayTestKit",
                "GatewayUpstream",
                "StrictJSON",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "EventLoopHTTP",
                "FCMEmulator",
                "FCMModel",
                "GatewayCore",
                "GatewayHTTP",
                "GatewayService",
                "GatewayTestKit",
                "GatewayUpstream",
                "RedisClient",
                "StrictJSON",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            // What belongs to libFuzzer alone; see Tests/FuzzTests/run.
            exclude: ["Corpus", "LibFuzzer", "Package.swift.in", "run", "seeds.py"]
        ),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "FCMGateway",
                // Built for the tests that start it.
                "FCMGatewayDev",
                "GatewayCore",
                "GatewayService",
                "GatewayStorage",
                "GatewayTestKit",
                "ProcessTestKit",
                "RedisTestKit",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOFoundationCompat", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            exclude: ["run"]
        ),
    ]
)

for target in package.targets where target.type != .system {
    target.swiftSettings = [
        .strictMemorySafety(),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("ImmutableWeakCaptures"),
        .enableUpcomingFeature("InferIsolatedConformances"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .treatAllWarnings(as: .error),
    ]
}
