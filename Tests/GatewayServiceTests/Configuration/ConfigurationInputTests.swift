import EventLoopHTTP
import GatewayCore
import GatewayStorage
import GatewayTestKit
import GatewayUpstream
import Logging
import Testing

@testable import GatewayService

struct ConfigurationInputTests {
    private static func load(_ yaml: String, _ environment: [String: String] = [:]) throws -> GatewayConfiguration {
        let file = ConfigurationFile(YAMLSource(name: "g.yaml", text: yaml))
        return try ConfigurationInput(file: file, environment: environment).configuration()
    }

    private static func problems(_ yaml: String, _ environment: [String: String] = [:]) -> [String] {
        do {
            _ = try Self.load(yaml, environment)
            return []
        } catch let error as ConfigurationProblems {
            return error.problems.map(\.description)
        } catch {
            return ["\(error)"]
        }
    }

    @Test("Without a file or environment every setting has its default")
    func defaults() throws {
        let configuration = try ConfigurationInput(file: nil as String?, environment: ["PATH": "/bin"]).configuration()
        for key in ConfigurationTable.keys {
            #expect(key.shown(configuration) == key.shown(GatewayConfiguration()), "\(key.path)")
        }
        #expect(configuration.masterKey == nil)
        #expect(configuration.admin.token == nil)
    }

    @Test("The file overrides defaults, and the environment overrides the file")
    func precedence() throws {
        let yaml = """
            dataDir: /srv/gw
            http: {port: 9000, host: 127.0.0.1, keepAliveTimeoutMs: 60000}
            upstream:
              allowedTokenHosts: [localhost:8085]
              v1Endpoint: http://localhost:8085/
            limits: {defaults: {topic: [1/2s:3]}}
            audit: {mode: strict}
            admin: {headTimeoutMs: 700, maxConnections: 9}
            """
        let configuration = try Self.load(
            yaml,
            [
                "GATEWAY_ADMIN_BODY_TIMEOUT_MS": "800",
                "GATEWAY_HTTP_PORT": "9001",
                "GATEWAY_UPSTREAM_V1_ENDPOINT": "http://localhost:8086",
                "GATEWAY_LIMITS_DEFAULTS_DEVICE": " 4/5s:6 ",
                "GATEWAY_LOG_FORMAT": "text",
            ]
        )
        #expect(configuration.http.server.port == 9001)
        #expect(configuration.http.server.host == "127.0.0.1")
        #expect(configuration.http.server.keepAliveTimeout == .seconds(60))
        #expect(configuration.admin.server.headTimeout == .milliseconds(700))
        #expect(configuration.admin.server.bodyTimeout == .milliseconds(800))
        #expect(configuration.admin.server.maxConnections == 9)
        #expect(configuration.http.server.headTimeout == .seconds(5))
        #expect(configuration.upstream.allowedTokenHosts == ["localhost:8085"])
        #expect(configuration.upstream.v1Endpoint == "http://localhost:8086")
        let policies = [try RatePolicy.sample(1, per: 2, burst: 3), try RatePolicy.sample(4, per: 5, burst: 6)]
        #expect(configuration.limits.defaults.topic + configuration.limits.defaults.device == policies)
        #expect(configuration.audit.mode == .strict)
        #expect(configuration.log.format == .text)
        #expect(configuration.databasePath == "/srv/gw/gateway.sqlite")
    }

    @Test("Each part's log level comes from the file or the environment")
    func logLevels() throws {
        let yaml = """
            log:
              level: notice
              levels: {upstream: debug, audit: error}
            """
        let configuration = try Self.load(yaml, ["GATEWAY_LOG_LEVELS_AUDIT": "trace", "GATEWAY_LOG_LEVELS_ACCESS": ""])
        #expect(configuration.log.level == .notice)
        #expect(configuration.log.levels == [.upstream: .debug, .audit: .trace])
        #expect(try Self.load("").log.levels.isEmpty)
    }

    @Test("Without tracing.otlpEndpoint no spans are exported; tracing.otlpHeaders is a secret")
    func tracing() throws {
        let standard = try Self.load("").tracing
        #expect(standard.propagation == .all && standard.otlpEndpoint.isEmpty && standard.sampleRatio == 1)
        let yaml = "tracing: {propagate: none, otlpEndpoint: 'http://localhost:4318', sampleRatio: 0.25}"
        let tracing = try Self.load(yaml, ["GATEWAY_TRACING_OTLP_HEADERS": "Authorization=Bearer%20canary"]).tracing
        #expect(tracing.propagation == .none && tracing.otlpEndpoint == "http://localhost:4318")
        #expect(tracing.otlpHeaders?.revealed == "Authorization=Bearer%20canary" && tracing.sampleRatio == 0.25)
        #expect(!"\(tracing)".contains("canary"))
        #expect(try Self.load(yaml, ["GATEWAY_TRACING_SAMPLE_RATIO": "1"]).tracing.sampleRatio == 1)
    }

    @Test(
        "Unknown log parts and bad log and tracing values are refused with file, line and key",
        arguments: [
            (
                "log: {levels: {upstrem: debug}}",
                "g.yaml:1: log.levels.upstrem: is not known; did you mean log.levels.upstream?"
            ),
            (
                "log:\n  levels:\n    http: loud",
                #"g.yaml:3: log.levels.http: must be one of trace, debug, info, notice, warning, error, critical, not "loud""#
            ),
            ("log: {levels: debug}", "g.yaml:1: log.levels: expected keys and values"),
            (
                "tracing: {otlpEndpoint: 'localhost:4318'}",
                "g.yaml:1: tracing.otlpEndpoint: expected a URL such as http://localhost:4318, without a user name"
            ),
            ("tracing: {sampleRatio: 1.5}", "g.yaml:1: tracing.sampleRatio: must be from 0 to 1, not 1.5"),
            (
                "tracing: {sampleRatio: half}",
                #"g.yaml:1: tracing.sampleRatio: expected a number, but found the text "half""#
            ),
            ("tracing: {propagate: some}", #"g.yaml:1: tracing.propagate: must be one of all, none, not "some""#),
        ]
    )
    func badLogLevels(yaml: String, problem: String) {
        #expect(Self.problems(yaml) == [problem])
    }

    @Test("A variable of an unknown log part is refused with the nearest known one")
    func badLogVariable() {
        #expect(
            Self.problems("", ["GATEWAY_LOG_LEVELS_UPSTREEM": "debug"])
                == ["GATEWAY_LOG_LEVELS_UPSTREEM: is not known; did you mean GATEWAY_LOG_LEVELS_UPSTREAM?"]
        )
    }

    @Test("A list in the environment is comma-separated, and its hosts are lowercased")
    func listFromEnvironment() throws {
        let hosts = try Self.load("", ["GATEWAY_UPSTREAM_ALLOWED_TOKEN_HOSTS": "OAuth2.example, localhost:8085"])
        #expect(hosts.upstream.allowedTokenHosts == ["oauth2.example", "localhost:8085"])
        let none = try Self.load("", ["GATEWAY_UPSTREAM_ALLOWED_TOKEN_HOSTS": ""])
        #expect(none.upstream.allowedTokenHosts == [])
    }

    @Test(
        "An invalid value is refused with the file's line and key",
        arguments: [
            ("http: {port: 65536}", "g.yaml:1: http.port: must be from 0 to 65535, not 65536"),
            ("http:\n  port: -1", "g.yaml:2: http.port: must be from 0 to 65535, not -1"),
            ("http: {host: ''}", "g.yaml:1: http.host: must not be empty"),
            ("http: {headTimeoutMs: 0}", "g.yaml:1: http.headTimeoutMs: must be from 100 to 60000, not 0"),
            ("eventLoops: 0", "g.yaml:1: eventLoops: must be from 1 to 1024, not 0"),
            ("audit: {mode: lax}", #"g.yaml:1: audit.mode: must be one of bounded, strict, not "lax""#),
            ("audit: {retentionDays: 0}", "g.yaml:1: audit.retentionDays: must be from 1 to 36500, not 0"),
            (
                "audit: {checkpointIntervalMs: 99}",
                "g.yaml:1: audit.checkpointIntervalMs: must be from 100 to 600000, not 99"
            ),
            ("audit: {sink: audit.jsonl}", "g.yaml:1: audit.sink: must be stdout, or file: and a path"),
            ("audit: {sink: 'file:'}", "g.yaml:1: audit.sink: names no file after file:"),
            ("audit: {sink: 'file:logs/'}", "g.yaml:1: audit.sink: names no file after file:"),
            ("log: {format: xml}", #"g.yaml:1: log.format: must be one of json, text, not "xml""#),
            ("http: {tls: {certificateFile: a}}", "g.yaml:1: http.tls.certificateFile: needs tls.privateKeyFile"),
            ("admin: {tls: {privateKeyFile: a}}", "g.yaml:1: admin.tls.privateKeyFile: needs tls.certificateFile"),
            (
                "http: {tls: {clientCaFile: a}}",
                "g.yaml:1: http.tls.clientCaFile: needs tls.certificateFile and tls.privateKeyFile"
            ),
            ("http: {port: 8081}", "g.yaml:1: http.port: admin.port and http.port must differ"),
            (
                "upstream: {timeoutMs: 30000}",
                "g.yaml:1: upstream.timeoutMs: upstream.timeoutMs must not exceed upstream.deadlineMs"
            ),
            (
                "upstream: {deadlineMs: 5000}",
                "g.yaml:1: upstream.deadlineMs: upstream.timeoutMs must not exceed upstream.deadlineMs"
            ),
            (
                "upstream: {legacyEndpoint: fcm}",
                "g.yaml:1: upstream.legacyEndpoint: expected a URL such as https://fcm.googleapis.com"
            ),
            (
                "upstream: {legacyEndpoint: 'http://fcm.example'}",
                "g.yaml:1: upstream.legacyEndpoint: must be https; http is for this machine itself and for the hosts in "
                    + "upstream.allowPlainHTTP alone"
            ),
            (
                "upstream: {allowPlainHTTP: ['fcm:8085']}",
                "g.yaml:1: upstream.allowPlainHTTP: \"fcm:8085\" is not a host's name or address without a port"
            ),
            (
                "upstream: {iidEndpoint: 'ftp://a'}",
                "g.yaml:1: upstream.iidEndpoint: expected a URL such as https://fcm.googleapis.com"
            ),
            (
                "upstream: {v1Endpoint: 'https://fcm.example:'}",
                "g.yaml:1: upstream.v1Endpoint: must hold a host's name in ASCII, and a port behind a colon"
            ),
            ("upstream: {topicApi: v2}", "g.yaml:1: upstream.topicApi: must be one of v1, iid, not \"v2\""),
            (
                "upstream: {v1Endpoint: 'https://a/b'}",
                "g.yaml:1: upstream.v1Endpoint: must name a scheme, host and port only, without a path or query"
            ),
            (
                "upstream: {v1Endpoint: 'https://u:p@a'}",
                "g.yaml:1: upstream.v1Endpoint: must not hold a user name or password"
            ),
            (
                "upstream: {allowedTokenHosts: ['https://a']}",
                #"g.yaml:1: upstream.allowedTokenHosts: "https://a" is not a host name with an optional port"#
            ),
            (
                "store: {url: 'postgres://u:secret@h/db'}",
                "g.yaml:1: store.url: must not hold a password; give it by GATEWAY_STORE_PASSWORD, or its …_FILE"
            ),
            (
                "store: {url: 'postgresql://u@h/db?password=secret'}",
                "g.yaml:1: store.url: must not hold a password; give it by GATEWAY_STORE_PASSWORD, or its …_FILE"
            ),
            (
                "store: {url: 'postgres://u@h/db?sslmod=require'}",
                "g.yaml:1: store.url: is not an address that libpq understands"
            ),
            (
                "store: {url: 'mysql://u@h/db'}",
                "g.yaml:1: store.url: must be sqlite:PATH or postgres://USER@HOST/DATABASE"
            ),
            (
                "store: {url: 'postgres://u@h/db?sslpassword=secret'}",
                "g.yaml:1: store.url: must not hold sslpassword; a service file of libpq may"
            ),
            (
                "limits: {perReplica: true, redisUrl: 'redis://h'}",
                "g.yaml:1: limits.perReplica: limits.perReplica means limits in memory; leave out either it or limits.redisUrl"
            ),
            ("store: {poolSize: 3}", "g.yaml:1: store.poolSize: must be from 4 to 100, not 3"),
            ("store: {maxStaleMs: 4999}", "g.yaml:1: store.maxStaleMs: must be from 5000 to 86400000, not 4999"),
            (
                "store: {migrate: 'true'}",
                #"g.yaml:1: store.migrate: expected true or false, but found the text "true""#
            ),
            ("store: {url: 'sqlite:'}", "g.yaml:1: store.url: names no file after sqlite:"),
            (
                "store: {url: 'sqlite::memory:'}",
                "g.yaml:1: store.url: a store in memory would lose tenants and audit records; name a file"
            ),
            (
                "limits: {defaults: {topic: [1/86400s:1000000]}}",
                "g.yaml:1: limits.defaults.topic: policy 1: a policy must refill its burst within 30 days"
            ),
            (
                "limits: {defaults: {topic: [\(Array(repeating: "1/1s:1", count: 5).joined(separator: ","))]}}",
                "g.yaml:1: limits.defaults.topic: must hold one to 4 policies"
            ),
            (
                "limits: {redisUrl: 'redis://:secret@h'}",
                "g.yaml:1: limits.redisUrl: must hold no password; set limits.redisPassword"
            ),
            (
                "limits: {redisUrl: 'rediss://u:secret@h:6379/0'}",
                "g.yaml:1: limits.redisUrl: must hold no password; set limits.redisPassword"
            ),
            (
                "limits: {redisUrl: 'redis://h?password=secret'}",
                "g.yaml:1: limits.redisUrl: must have no query and no fragment"
            ),
            (
                "limits: {redisUrl: 'redis+sentinel://h'}",
                "g.yaml:1: limits.redisUrl: must name the service that the Sentinels watch, as in /mymaster"
            ),
        ]
    )
    func ranges(yaml: String, problem: String) {
        #expect(Self.problems(yaml) == [problem])
    }

    @Test(
        "A malformed or unknown variable is refused by its name",
        arguments: [
            ("GATEWAY_HTTP_PORT", "80a", #""80a" is not a whole number"#),
            ("GATEWAY_HTTP_PORT", "", #""" is not a whole number"#),
            ("GATEWAY_HTTP_MAX_CONNECTIONS", "0", "must be from 1 to 1000000, not 0"),
            ("GATEWAY_AUDIT_MODE", "Bounded", #"must be one of bounded, strict, not "Bounded""#),
            (
                "GATEWAY_LIMITS_DEFAULTS_TENANT", "180/60s:60,180/60",
                "policy 2: expected RATE/PERIOD:BURST, such as 180/60s:60"
            ),
            ("GATEWAY_LIMITS_DEFAULTS_TENANT", "", "must hold one to 4 policies"),
            ("GATEWAY_TRACING_SAMPLE_RATIO", "10%", #""10%" is not a number"#),
            (
                "GATEWAY_TRACING_OTLP_HEADERS", "Bearer secret",
                "expected name=value,name=value with percent-encoded values; "
                    + "member 1 lacks this form, or names a field that the gateway sets itself"
            ),
            ("GATEWAY_HTTP_PROT", "1", "is not known; did you mean GATEWAY_HTTP_PORT?"),
            ("GATEWAY_MASTERKEY", "1", "is not known; did you mean GATEWAY_MASTER_KEY?"),
            ("GATEWAY_COMPLETELY_DIFFERENT_THING", "1", "is not known"),
        ]
    )
    func environmentProblems(name: String, value: String, problem: String) {
        #expect(Self.problems("", [name: value]) == ["\(name): \(problem)"])
    }

    @Test("The variables of client verbs are not reported as unknown")
    func clientVariables() {
        let environment = [
            "GATEWAY_URL": "u", "GATEWAY_KEY": "k", "GATEWAY_ADMIN_URL": "a",
            "GATEWAY_ADMIN_TOKEN": "thirty-two-characters-are-enough",
        ]
        #expect(Self.problems("", environment) == [])
    }

    @Test("Problems of the file, the environment and the values are reported together")
    func everythingAtOnce() {
        let problems = Self.problems(
            "nope: 1\nhttp: {port: 70000}",
            ["GATEWAY_LOG_LEVEL": "loud", "GATEWAY_WHAT_IS_THIS_VARIABLE": "x", "GATEWAY_MASTER_KEY": "short"]
        )
        #expect(
            problems == [
                "g.yaml:1: nope: is not known",
                "GATEWAY_WHAT_IS_THIS_VARIABLE: is not known",
                "GATEWAY_MASTER_KEY: must be base64 of exactly 32 bytes, not other text of 5 characters; "
                    + "openssl rand -base64 32 prints one",
                "g.yaml:2: http.port: must be from 0 to 65535, not 70000",
                "GATEWAY_LOG_LEVEL: must be one of trace, debug, info, notice, warning, error, critical, not \"loud\"",
            ]
        )
    }

    @Test("Rows name each value's source, and show no secret")
    func describe() async throws {
        try await TemporaryDirectory.with { directory in
            let token = try directory.file("token", "a-token-that-has-32-or-more-nobody-may-see\n")
            let key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
            let input = ConfigurationInput(
                file: ConfigurationFile(YAMLSource(name: "g.yaml", text: "http:\n  port: 9000\n")),
                environment: ["GATEWAY_MASTER_KEY": key, "GATEWAY_ADMIN_TOKEN_FILE": token, "GATEWAY_HTTP_HOST": "::1"]
            )
            let configuration = try input.configuration()
            #expect(configuration.masterKey?.revealed == Array("01234567890123456789012345678901".utf8))
            #expect(configuration.admin.token?.revealed == "a-token-that-has-32-or-more-nobody-may-see")

            let rows = Dictionary(uniqueKeysWithValues: input.describe().map { ($0.key.path, $0) })
            #expect(rows.count == ConfigurationTable.keys.count)
            #expect(rows["http.port"]?.value == "9000")
            #expect(rows["http.port"]?.source.description == "g.yaml:2")
            #expect(rows["http.host"]?.source.description == "GATEWAY_HTTP_HOST")
            #expect(rows["admin.port"]?.source.description == "default")
            #expect(rows["masterKey"]?.value == "<redacted>")
            #expect(rows["masterKey"]?.source.description == "GATEWAY_MASTER_KEY")
            #expect(rows["admin.token"]?.value == "<redacted>")
            #expect(rows["admin.token"]?.source.description == "GATEWAY_ADMIN_TOKEN_FILE")

            let shown = "\(input.describe())"
            #expect(!shown.contains(key))
            #expect(!shown.contains("nobody-may-see"))
            var dumped = ""
            dump(configuration, to: &dumped)
            #expect(!dumped.contains("nobody-may-see"))
            #expect(!"\(configuration)".contains("nobody-may-see"))
        }
    }

    @Test("PostgreSQL's settings come from the store's keys, and its password is never shown")
    func postgreSQL() throws {
        let input = ConfigurationInput(
            file: nil as String?,
            environment: [
                "GATEWAY_STORE_URL": "postgresql://u@h1,h2/d", "GATEWAY_STORE_PASSWORD": "canary",
                "GATEWAY_STORE_POOL_SIZE": "17", "GATEWAY_STORE_MIGRATE": "true",
            ]
        )
        let configuration = try input.configuration()
        let settings = try #require(configuration.postgreSQL)
        #expect(settings.url == "postgresql://u@h1,h2/d")
        #expect(settings.password?.revealText() == "canary")
        #expect(settings.poolSize == 17)
        #expect(configuration.store.migrates)
        #expect(!input.describe().contains { $0.value.contains("canary") })
        #expect(GatewayConfiguration().postgreSQL == nil)
    }

    @Test(
        "On PostgreSQL serve requires limits in Redis or per replica; other commands don't",
        arguments: [
            (["GATEWAY_STORE_URL": "postgres://u@h/d"], false),
            (["GATEWAY_STORE_URL": "postgres://u@h/d", "GATEWAY_LIMITS_PER_REPLICA": "true"], true),
            (["GATEWAY_STORE_URL": "postgres://u@h/d", "GATEWAY_LIMITS_REDIS_URL": "redis://h"], true),
            (["GATEWAY_STORE_URL": "sqlite:g.sqlite"], true),
        ]
    )
    func sharedLimits(environment: [String: String], isEnough: Bool) throws {
        let input = ConfigurationInput(file: nil as String?, environment: environment)
        let configuration = try input.configuration()
        guard !isEnough else { return try input.checkServing(configuration) }
        let refusal = #expect(throws: ConfigurationProblems.self) { try input.checkServing(configuration) }
        let problem = try #require(refusal?.problems.first)
        #expect(problem.key == "store.url")
        #expect(
            problem.description.hasPrefix("GATEWAY_STORE_URL: each replica on PostgreSQL would allow the full limits")
        )
    }

    @Test(
        "Limits in Redis with a SQLite store cause a warning at their place and don't stop serve",
        arguments: [
            ("limits:\n  redisUrl: redis://localhost", ["g.yaml:2: limits.redisUrl"]),
            ("store: {url: 'postgres://u@localhost/d'}\nlimits: {redisUrl: 'redis://localhost'}", []),
            ("store: {url: 'postgres://u@localhost/d'}\nlimits: {perReplica: true}", []),
            ("", []),
        ] as [(String, [String])]
    )
    func unsharedLimits(yaml: String, places: [String]) throws {
        let key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
        let input = ConfigurationInput(
            file: ConfigurationFile(YAMLSource(name: "g.yaml", text: yaml)),
            environment: [
                "GATEWAY_MASTER_KEY": key, "GATEWAY_ADMIN_TOKEN": "thirty-two-characters-are-enough",
                "GATEWAY_HTTP_HOST": "127.0.0.1",
            ]
        )
        let configuration = try input.configuration()
        let warnings = configuration.warnings.map { input.sources.locate($0).description }
        let problem =
            ": no other gateway shares these limits, because the store is SQLite; replicas of one PostgreSQL do"
        #expect(warnings == places.map { $0 + problem })
        try input.checkServing(configuration)
        #expect(try configuration.servingSecrets().masterKey.revealed.count == 32)
    }

    @Test(
        "Remote PostgreSQL and Redis servers without verified TLS cause warnings",
        arguments: [
            ("postgres://u@h/d", "rediss://h", ["store.url: sslmode=prefer"]),
            ("postgres://u@h/d?sslmode=require", "rediss://h", ["store.url: sslmode=require"]),
            ("postgres://u@h/d?sslmode=verify-full", "rediss://h", []),
            ("postgres://u@h/d?sslmode=verify-ca", "redis://127.0.0.2", []),
            ("postgres://u@localhost,127.0.0.1,[::1]/d", "redis://[::1]", []),
            ("postgres://u@localhost,db2/d", "redis://localhost", ["store.url: sslmode=prefer"]),
            ("postgres://u@db/d?hostaddr=127.0.0.1", "redis://localhost", []),
            ("postgres://u@localhost/d?hostaddr=10.0.0.1", "redis://localhost", ["store.url: sslmode=prefer"]),
            ("postgres:///d?host=/run/postgresql&user=u", "redis://localhost", []),
            (
                "postgres:///d?sslmode=disable", "redis://127.evil.example",
                ["limits.redisUrl: Redis is not reached by TLS"]
            ),
            ("postgres:///d", "redis+sentinel://localhost,h/m", ["limits.redisUrl: Redis is not reached by TLS"]),
            ("postgres:///d", "rediss+sentinel://h/m", []),
        ]
    )
    func unverified(store: String, redis: String, warnings: [String]) throws {
        let input = ConfigurationInput(
            file: nil as String?,
            environment: [
                "GATEWAY_STORE_URL": store, "GATEWAY_LIMITS_REDIS_URL": redis, "GATEWAY_HTTP_HOST": "127.0.0.1",
            ]
        )
        let configuration = try input.configuration()
        let told = configuration.servingWarnings.map(\.description)
        #expect(told.count == warnings.count)
        for (told, warning) in zip(told, warnings) { #expect(told.hasPrefix(warning)) }
        try input.checkServing(configuration)
    }

    @Test(
        "Plain HTTP beyond this machine causes a warning at the place of the address",
        arguments: [
            ("", ["http.host: API keys travel in the clear on 0.0.0.0; set http.tls.certificateFile"]),
            ("http: {host: 127.0.0.9}\nadmin: {host: '::1'}", []), ("http: {host: localhost}", []),
            (
                "http: {host: '::'}\nadmin: {host: 10.1.2.3}",
                [
                    "g.yaml:1: http.host: API keys travel in the clear on ::; set http.tls.certificateFile",
                    "g.yaml:2: admin.host: the admin token travels in the clear on 10.1.2.3; set admin.tls",
                ]
            ),
            ("http: {tls: {certificateFile: /a, privateKeyFile: /b}}", []),
            ("http: {host: localhost}\ntracing: {otlpEndpoint: 'http://[::1]:4318'}", []),
            (
                "http: {host: localhost}\ntracing: {otlpEndpoint: 'http://collector:4318'}",
                ["g.yaml:2: tracing.otlpEndpoint: tracing.otlpHeaders travels in the clear"]
            ),
        ] as [(String, [String])]
    )
    func inTheClear(yaml: String, warnings: [String]) throws {
        let input = ConfigurationInput(
            file: ConfigurationFile(YAMLSource(name: "g.yaml", text: yaml)),
            environment: ["GATEWAY_TRACING_OTLP_HEADERS": "a=b"]
        )
        let told = try input.configuration().servingWarnings.map { input.sources.locate($0).description }
        #expect(told.count == warnings.count, "\(told)")
        for (told, warning) in zip(told, warnings) { #expect(told.hasPrefix(warning)) }
    }

    @Test(
        "Relative paths lie in the data directory",
        arguments: [
            ("gateway.sqlite", "/data", "/data/gateway.sqlite"), ("a/b.sqlite", "/data/", "/data/a/b.sqlite"),
            ("/srv/g.sqlite", "/data", "/srv/g.sqlite"), ("g", "./var/dev", "./var/dev/g"),
        ]
    )
    func paths(written: String, dataDir: String, path: String) {
        var configuration = GatewayConfiguration()
        configuration.dataDir = dataDir
        #expect(configuration.spoolDirectory == dataDir)
        #expect(configuration.auditSinkPath == nil)
        configuration.storeURL = "sqlite:\(written)"
        configuration.audit.sink = "file:\(written)"
        configuration.audit.spoolDir = written
        #expect(configuration.databasePath == path)
        #expect(configuration.auditSinkPath == path)
        #expect(configuration.spoolDirectory == path)
    }
}
