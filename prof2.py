import sys, polars, kpca_apps, cProfile, pstats, collections
table = polars.read_csv('/tmp/speed/1000.csv')
model=kpca_apps.load_model('/tmp/speed/m-speed.npz')
for i in range(3): kpca_apps.score_table(model, table[i:i+1])
p=cProfile.Profile(); p.enable()
for i in range(20): kpca_apps.score_table(model, table[i:i+1])
p.disable(); s=pstats.Stats(p)
# attribute calls + tottime to nearest kpca caller: tottime of own + non-kpca callees
own=collections.Counter(); calls=collections.Counter()
st=s.stats
def is_k(f): return 'kpca_apps' in f[0]
# propagate: for non-kpca function, distribute cumulative to kpca callers
for f,(cc,nc,tt,ct,callers) in st.items():
    if is_k(f): own[f]+=tt
    for c,v in callers.items():
        if is_k(c) and not is_k(f):
            own[c]+=v[3]
# subtract kpca cum called inside non-kpca (approx ignored)
for f,v in own.most_common(60): print(f"{v/20*1e3:7.2f} {st[f][1]/20:6.0f} {f[0].split('kpca_apps/')[-1]}:{f[1]} {f[2]}")
print(s.total_tt/20*1e3)
