"""Lock -> plan: one step for each thing to fetch, make or build, with its key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from rocbase.errors import InputError
from rocwright.catalog.environment import for_recipe
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component
from rocwright.model.edits import TARGETS
from rocwright.model.steps import (
    PREPARE,
    About,
    FetchAction,
    Input,
    OutputSpec,
    Plan,
    Resources,
    RunAction,
    Step,
    TreeAction,
)
from rocwright.plan.below import shared_steps
from rocwright.plan.bundle import bundled
from rocwright.plan.domain import digests, domain_of
from rocwright.plan.edits import edits_as_written, edits_for
from rocwright.plan.image import image_step
from rocwright.plan.labels import image_labels
from rocwright.plan.packages import RUN_WHEELS, WHEEL_OUTPUT, fetched, wheel_steps
from rocwright.plan.remedies import actions_for, check_remedies, edits_of, memory_of, remedied_commands
from rocwright.plan.resolve.aliases import PYTHON, ROCM, base_of, catalog_for
from rocwright.plan.resolve.model import (
    Lock,
    LockedComponent,
    LockedProvider,
    LockedPython,
    LockedRoot,
)
from rocwright.plan.resolve.validate import check_fits
from rocwright.plan.roots import root_steps
from rocwright.plan.values import environment_of, present, versions_of

PREPARE_SECONDS = 60.0
# How many times larger a source tree, unpacked and packed again, is than what was fetched.
TREE = 10
# The phase of edits that are applied after a recipe's `prepare` commands.
PREPARED = "prepared"

# Kinds of components of which nothing is built.
AS_PUBLISHED = ("image", "file", "wheels")

# What the commands of a recipe find its downloads under, in $IN.
DOWNLOADS = "downloads"

# What stands in a recipe's commands for the architecture asked for.
ARCHITECTURE = "{architecture}"

TREE_OUTPUT = OutputSpec(name="tree", pattern="tree.tar")
# Hands the prepared tree on: the same tree, the same bytes.
PACK_TREE = (
    "tar --sort=name --mtime=@$SOURCE_DATE_EPOCH --owner=0 --group=0 --numeric-owner --format=posix "
    "--pax-option=delete=atime,delete=ctime -C $SRC -cf $OUT/tree.tar ."
)


def make_plan(lock: Lock, catalog: Catalog, *, alone: bool = False) -> Plan:
    """The steps that turn a lock into artifacts, each after what it needs.

    What the lock that it stands on builds is taken from the plan of that one; planned `alone`, everything is
    built with the packages of this lock.
    Raises InputError where the lock does not match the recipes.
    """
    base_plan = make_plan(lock.on, catalog) if lock.on is not None and not alone else None
    catalog = catalog_for(lock.request, catalog)
    check_fits(lock, catalog)
    check_remedies(lock, catalog)
    return _Maker(lock, catalog, base_plan).plan()


class _Maker:
    """A plan in the making: steps by name, and which output of each component others install."""

    def __init__(self, lock: Lock, catalog: Catalog, base_plan: Plan | None = None) -> None:
        self.lock, self.catalog = lock, catalog
        self.below = (
            {step.name: step for step in shared_steps(base_plan, lock)} if base_plan is not None else {}
        )
        self.base, self.release = base_of(lock, catalog)
        self.steps: list[Step] = []
        self.roots: dict[str, Step] = {}
        self.shared: dict[str, list[Input]] = {}
        self.tarballs: list[Input] = []
        self.wheels: dict[str, Step] = {}
        self.archives: dict[str, Step] = {}
        # looked up for every step: gathered once, else a plan takes the square of its steps
        self.versions = {component.name: component.version for component in lock.components}
        self.place = {name: position for position, name in enumerate(self.versions)}
        self.beside, self.present = versions_of(lock), present(lock)
        self.needed: dict[str, frozenset[str]] = {}
        self.about: dict[str, About] = {}
        self.brings: dict[str, tuple[str, ...]] = {}
        """For trust domains, by name of an input: digests of what is fetched, domains of what is built."""

    def plan(self) -> Plan:
        self.steps += self.below.values()
        for root in self.lock.roots:
            steps = list(root_steps(root, self.catalog))
            self.roots[root.role] = steps[-1]
            self.steps += steps
        for name, part in ((PYTHON, self.lock.python), (ROCM, self.lock.rocm)):
            if part is not None and (part.files or part.sdists or part.pending):
                self._shared(name, part)
        if (run := self.lock.python_run) is not None:
            self.steps.append(fetched(RUN_WHEELS, PYTHON, run.files, run.pending))
        artifacts = [name for locked in self.lock.components for name in self._component(locked)]
        return Plan(steps=tuple(map(self._with_materials, _unique(self.steps))), artifacts=tuple(artifacts))

    def _with_materials(self, step: Step) -> Step:
        """The step with what it is made of."""
        if step.component not in self.about:
            version, request = self.versions.get(step.component, ""), self.lock.request
            self.about[step.component] = About(
                version=version,
                base=request.base,
                targets=request.gpu,
                architecture=request.architecture.value,
            )
        return step.model_copy(update={"about": self.about[step.component]})

    def _shared(self, name: str, part: LockedPython | LockedProvider) -> None:
        """The Python packages, or ROCm's own files, that builds install; a wheel made of each sdist."""
        packages = fetched(name, name, part.files, part.pending)
        self.steps.append(packages)
        fetched_files = Input(name=name, key=packages.key, output="*")
        self.brings[name] = digests(part.files)
        if isinstance(part, LockedProvider) and self.catalog.provider(part.name).kind == "archive":
            self.tarballs.append(fetched_files)
            return
        self.shared[name] = [fetched_files]
        for sdist in part.sdists:
            *prerequisites, built = wheel_steps(
                name, sdist, self.roots["build"], self.base, self.release.interpreter
            )
            self.steps += [*prerequisites, built]
            item = Input(name=f"{name}-{sdist.name}", key=built.key, output=WHEEL_OUTPUT.name)
            self.shared[name].append(item)
            self.brings[item.name] = (built.domain,)

    def _component(self, locked: LockedComponent) -> list[str]:
        """Add a component's steps; gives the names of those whose outputs are asked for."""
        component = self.catalog.component(locked.name)
        if (built := self.below.get(component.name)) is not None:
            packed = f"image/{component.name}"
            return [self._offered(component, built), *((packed,) if packed in self.below else ())]
        if component.kind in AS_PUBLISHED:
            pulled = _fetch_step(component, locked)
            self.steps.append(pulled)
            return [pulled.name]
        steps = [_fetch_step(component, locked)]
        steps.append(self._tree(component, locked, steps[-1]))
        # what is pending can only be exported, by its place
        sources = digests(locked.files) or (f"{locked.place} {locked.commit}",)
        if component.prepare_of(locked.version):
            steps.append(self._commands(component, locked, steps[-1], sources, prepare=True))
            sources = (steps[-1].domain,)
            steps.append(self._tree(component, locked, steps[-1], PREPARED))
        built = self._commands(component, locked, steps[-1], sources)
        self.steps += [*steps, built]
        artifacts = [self._offered(component, built)]
        if component.image is not None:
            run = _root(self.lock, "run")
            dependencies = self._needs_of(component, locked)
            inside = [dependency for dependency in self.lock.components if dependency.name in dependencies]
            labels = image_labels(component, locked, self.lock, run, inside)
            root = self.roots["run"]
            image = image_step(component.image, component, locked, self.lock, run, built, root, labels)
            self.steps.append(image)
            artifacts.append(image.name)
        return artifacts

    def _offered(self, component: Component, built: Step) -> str:
        """Note what others install or lay in of a component; gives the name of its step."""
        self.brings[component.name] = (built.domain,)
        if component.kind == "wheel":
            self.wheels[component.name] = built
        if component.kind == "archive":
            self.archives[component.name] = built
        return built.name

    def _tree(self, component: Component, locked: LockedComponent, source: Step, phase: str = "") -> Step:
        """The source unpacked and edited; in the phase "prepared" the tree that the commands left, edited."""
        first = not phase
        return Step(
            name=f"{'tree' if first else phase}/{component.name}",
            component=component.name,
            action=TreeAction(
                subdir=locked.subdir if first else "",
                series=locked.series if first else (),
                packaging=locked.packaging if first else (),
                edits=edits_for(
                    (*component.edit, *edits_of(self.lock, component.name)),
                    locked.version,
                    self.lock.request.gpu,
                    locked.kind,
                    phase,
                    self.beside,
                ),
                version=locked.version,
            ),
            inputs=(Input(name="source", key=source.key, output="*"),),
            resources=Resources(disk=TREE * sum(pin.size for pin in locked.files), seconds=5, limit=3600),
        )

    def _installed(self, component: Component, locked: LockedComponent) -> tuple[Input, ...]:
        """What is installed before a component's commands: build requirements, ROCm, the wheels it needs."""
        dependencies = self._needs_of(component, locked)
        wheels = [
            Input(name=name, key=step.key, output=step.action.outputs[0].name)
            for name, step in self._among(self.wheels, dependencies)
            if isinstance(step.action, RunAction)
        ]
        shared = [
            package
            for name, inputs in self.shared.items()
            for package in inputs
            if name != PYTHON or component.python_of(locked.version) or wheels
        ]
        return (*shared, *wheels)

    def _laid_in(self, component: Component, locked: LockedComponent) -> tuple[Input, ...]:
        """The archives that a component takes in, for the commands before its own to unpack."""
        dependencies = self._needs_of(component, locked)
        return (
            *(tarball for tarball in self.tarballs if tarball.name in dependencies),
            *(
                Input(name=name, key=step.key, output=self.catalog.component(name).output[0].name)
                for name, step in self._among(self.archives, dependencies)
            ),
        )

    def _needs_of(self, component: Component, locked: LockedComponent) -> frozenset[str]:
        """Everything that a component needs, and what that needs in turn."""
        if component.name in self.needed:
            return self.needed[component.name]
        waiting = [component.takes(locked.version, self.versions)]
        visited: set[str] = set()
        while waiting:
            for name in set(waiting.pop()) - visited:
                visited.add(name)
                if name in self.versions:
                    waiting.append(self.catalog.component(name).takes(self.versions[name], self.versions))
        self.needed[component.name] = frozenset(visited)
        return self.needed[component.name]

    def _among(self, steps: Mapping[str, Step], names: Collection[str]) -> list[tuple[str, Step]]:
        """Those of the steps that are named, in the lock's order."""
        pairs = ((name, steps[name]) for name in names if name in steps)
        return sorted(pairs, key=lambda pair: self.place[pair[0]])

    def _setup(self, component: Component, locked: LockedComponent, *, compiles: bool) -> tuple[str, ...]:
        """The commands that make ROCm and what a component takes in be found, before its own; where it
        `compiles`, its compilers run through the compiler cache, and wheels below it are set up too."""
        dependencies = self._needs_of(component, locked)
        commands: list[str] = []
        if self.lock.rocm is not None and ROCM in dependencies:
            commands += self.catalog.provider(self.lock.rocm.name).setup
        system = component.system_of(locked.version)
        requirements = {*system.build, *system.rocm}
        for launcher in self.catalog.launchers:
            commands += launcher.setup if compiles and launcher.package in requirements else ()
        built_on = {**self.archives, **(self.wheels if compiles and system.rocm else {})}
        for name, _ in self._among(built_on, dependencies):
            commands += self.catalog.component(name).setup
        return tuple(commands)

    def _commands(
        self,
        component: Component,
        locked: LockedComponent,
        tree: Step,
        sources: tuple[str, ...],
        *,
        prepare: bool = False,
    ) -> Step:
        installed, laid_in = self._installed(component, locked), self._laid_in(component, locked)
        resources = component.resources
        downloads = [] if prepare else list(_downloads(component, locked))
        self.steps += downloads
        setup = self._setup(component, locked, compiles=not prepare)
        run = (*component.prepare_of(locked.version), PACK_TREE)
        if not prepare:
            uses = component.uses | component.released(locked.version).uses
            archives = (self.catalog.component(name) for name, _ in self._among(self.archives, uses))
            run = bundled(component.run, archives)
        actions = actions_for(self.lock, component.name)
        commands = remedied_commands((*setup, *run), actions)

        def number(position: int) -> int:
            # where a command of the recipe is among all; 0 of what prepares a tree
            counts = position and not prepare
            return len(remedied_commands((*setup, *run[: position - 1]), actions)) + 1 if counts else 0

        commands = tuple(
            command.replace(ARCHITECTURE, self.lock.request.architecture) for command in commands
        )
        # as the recipe has it for all GPUs, and for those asked for where that is something else
        around = self.base.env | for_recipe(self.catalog, self.lock.request.gpu, component.name)
        written = environment_of(component, locked, self.lock, around, self.present, TARGETS)
        env = written
        if any(TARGETS in value for value in written.values()):
            env = environment_of(component, locked, self.lock, around, self.present)
        return Step(
            name=f"{PREPARE}{component.name}" if prepare else component.name,
            component=component.name,
            action=RunAction(
                commands=commands,
                env=env,
                outputs=(TREE_OUTPUT,) if prepare else component.output,
                install=tuple(package.name for package in installed),
                python=self.release.interpreter if PYTHON in self.lock.provided else "",
                guard=() if prepare else component.guard,
                compiler_reads=self.base.compiler_reads,
                resume=number(component.resume),
                split=number(component.split),
            ),
            inputs=(
                Input(name="root", key=self.roots["build"].key, output="root"),
                Input(name="src", key=tree.key, output="tree"),
                *installed,
                *laid_in,
                *(Input(name=DOWNLOADS, key=download.key, output="*") for download in downloads),
            ),
            resources=Resources(
                cores=64,
                memory=max(resources.memory_per_job, memory_of(self.lock, component.name)),
                # what a recipe says is for the build; its tree is prepared in a minute or so
                disk=TREE * sum(pin.size for pin in locked.files) if prepare else resources.disk,
                seconds=PREPARE_SECONDS if prepare else resources.seconds,
                limit=resources.limit,
            ),
            domain=domain_of(
                component.name,
                root=self.roots["build"].key,
                sources=(*sources, *(() if prepare else digests(locked.downloads))),
                tree=(locked.subdir, *locked.series, *locked.packaging),
                edits=edits_as_written(
                    (*component.edit, *edits_of(self.lock, component.name)),
                    locked.version,
                    locked.kind,
                    self.beside,
                ),
                commands=commands,
                env=written,
                installed=(digest for item in (*installed, *laid_in) for digest in self.brings[item.name]),
            ),
        )


def _root(lock: Lock, role: str) -> LockedRoot:
    root = lock.root(role)
    if root is None:
        raise InputError(
            f"the lock has no packages to {role}",
            cause="the lock was edited, or made for another recipe",
            next_step="rocwright lock",
        )
    return root


def _unique(steps: Iterable[Step]) -> list[Step]:
    return list({step.key: step for step in steps}.values())


def _fetch_step(component: Component, locked: LockedComponent) -> Step:
    return Step(
        name=f"{component.kind if component.kind in AS_PUBLISHED else 'source'}/{component.name}",
        component=component.name,
        action=FetchAction(files=locked.files, pending=locked.pending),
        resources=Resources(disk=sum(pin.size for pin in locked.files), seconds=5),
    )


def _downloads(component: Component, locked: LockedComponent) -> Iterator[Step]:
    """The fetching of what a build wants beside its source, where it wants anything."""
    if component.downloads(locked.version):
        yield Step(
            name=f"{DOWNLOADS}/{component.name}",
            component=component.name,
            action=FetchAction(
                files=locked.downloads, pending=f"downloads: {locked.pending}" if locked.pending else ""
            ),
            resources=Resources(disk=sum(pin.size for pin in locked.downloads), seconds=30),
        )
